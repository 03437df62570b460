//! What the tests of the loop play on: a store, a fake executor, a model that follows a script, and the loop itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use futures::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use mooring_authority::Protected;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::agent::{AgentParts, AgentSettings, Runs};
use crate::environment::{EnvironmentResolver, FakeExecutor, LocalSettings};
use crate::model::{ModelClient, ModelConfig, ModelTiming};
use crate::session::{
    Creator, EnvironmentRef, Event, Item, Limits, Mode, NewSession, Origin, Profile, Run, RunId, RunState,
    Session, SessionId,
};
use crate::store::{Clock, Store};

/// Nothing here takes longer unless it is broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// One answer of the scripted model.
#[derive(Clone)]
pub(super) enum Play {
    /// The whole stream.
    Stream(String),
    /// This much of a stream, then silence.
    Hang(String),
}

/// A text answer.
pub(super) fn say(text: &str) -> Play {
    Play::Stream(chunk(&json!({"content": text}), None) + &end("stop"))
}

/// Calls: id, tool, arguments as text.
pub(super) fn calls(calls: &[(&str, &str, &str)]) -> Play {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (id, name, arguments))| {
            json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    Play::Stream(chunk(&json!({"tool_calls": calls}), None) + &end("tool_calls"))
}

/// One Shell call.
pub(super) fn shell(id: &str, command: &str) -> Play {
    calls(&[(id, "Shell", &json!({"command": command}).to_string())])
}

/// The beginning of an answer that never goes on.
pub(super) fn hang(text: &str) -> Play {
    Play::Hang(chunk(&json!({"content": text}), None))
}

pub(super) fn end(reason: &str) -> String {
    chunk(&json!({}), Some(reason)) + "data: [DONE]\n\n"
}

pub(super) fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
    format!("data: {chunk}\n\n")
}

#[derive(Clone)]
struct Model {
    script: Arc<Mutex<VecDeque<Play>>>,
    asked: Arc<watch::Sender<Vec<Value>>>,
}

async fn answer(State(model): State<Model>, body: String) -> Response<Body> {
    let body = serde_json::from_str(&body).expect("a request is JSON");
    model.asked.send_modify(|asked| asked.push(body));
    let play = model.script.lock().expect("lock").pop_front();
    let body = match play {
        Some(Play::Stream(text)) => Body::from(text),
        Some(Play::Hang(text)) => {
            let begin = stream::iter([Ok::<_, std::io::Error>(text)]);
            Body::from_stream(begin.chain(stream::pending()))
        }
        None => return Response::builder().status(400).body(Body::from("{}")).expect("answer"),
    };
    Response::builder().header(CONTENT_TYPE, "text/event-stream").body(body).expect("answer")
}

pub(super) struct Stage {
    pub(super) base: tempfile::TempDir,
    pub(super) store: Store,
    pub(super) fake: FakeExecutor,
    pub(super) resolver: Arc<EnvironmentResolver>,
    pub(super) runs: Runs,
    pub(super) settings: AgentSettings,
    model: Model,
    url: String,
    ahead: Arc<Mutex<SignedDuration>>,
}

impl Stage {
    pub(super) async fn new(script: impl IntoIterator<Item = Play>) -> Self {
        let base = tempfile::tempdir().expect("folder");
        for folder in ["state", "dir"] {
            std::fs::create_dir(base.path().join(folder)).expect("folder");
        }
        let ahead = Arc::new(Mutex::new(SignedDuration::ZERO));
        let by = Arc::clone(&ahead);
        let clock: Clock = Arc::new(move || Timestamp::now() + *by.lock().expect("lock"));
        let store = Store::open(&base.path().join("state/store.db"), clock).await.expect("store");
        let model = Model {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            asked: Arc::new(watch::channel(Vec::new()).0),
        };
        let app = Router::new().route("/chat/completions", post(answer)).with_state(model.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let url = format!("http://{}", listener.local_addr().expect("address"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        let fake = FakeExecutor::default();
        let resolver = new_resolver(&base, &store, &fake);
        let mut settings = AgentSettings::new("test");
        settings.lease = Duration::from_secs(5);
        let runs = new_runs(&store, &resolver, &url, &settings);
        Self { base, store, fake, resolver, runs, settings, model, url, ahead }
    }

    /// Makes the clock of the store jump.
    pub(super) fn advance(&self, by: Duration) {
        *self.ahead.lock().expect("lock") += SignedDuration::try_from(by).expect("in range");
    }

    /// Takes the loop away in the middle of whatever it does, as a dying process would, and puts a new one in its place.
    /// With `same_executor` the executor lives on.
    pub(super) async fn restart(&mut self, same_executor: bool) {
        self.runs.shutdown().await;
        if !same_executor {
            self.fake.kill();
            self.resolver = new_resolver(&self.base, &self.store, &self.fake);
        }
        self.store.free_leases().await.expect("leases");
        self.runs = new_runs(&self.store, &self.resolver, &self.url, &self.settings);
    }

    /// The same with other numbers.
    pub(super) fn renew(&mut self, change: impl FnOnce(&mut AgentSettings)) {
        change(&mut self.settings);
        self.runs = new_runs(&self.store, &self.resolver, &self.url, &self.settings);
    }

    pub(super) async fn session(&self, mode: Mode, limits: Limits) -> SessionId {
        let environment = self.resolver.bind_local(None).await.expect("bound");
        self.session_in(Profile::Default, mode, limits, Some(environment)).await
    }

    pub(super) async fn session_in(
        &self,
        profile: Profile,
        mode: Mode,
        limits: Limits,
        environment: Option<EnvironmentRef>,
    ) -> SessionId {
        let id = SessionId::new();
        let environment = environment.unwrap_or_else(|| EnvironmentRef::none(id));
        let new =
            NewSession { id, profile, mode, model: None, limits, environment, creator: Creator::Person };
        self.store.create_session(&new).await.expect("session").id
    }

    /// Says something as the owner and sets the loop going.
    pub(super) async fn post(&self, session: SessionId, text: &str) -> RunId {
        let message = self.store.post_message(session, &Origin::Owner, text).await.expect("message");
        self.runs.wake(session);
        message.run
    }

    /// Waits for the run's end and gives it in words.
    pub(super) async fn ended(&self, session: SessionId, run: RunId) -> String {
        let run = self.until(session, run, |run| !run.state.is_open()).await;
        match run.state {
            RunState::Finished(outcome) => outcome.as_str().to_owned(),
            RunState::Failed { code, .. } => format!("failed {code}"),
            state @ (RunState::Queued | RunState::Running | RunState::Waiting | RunState::Interrupted) => {
                state.as_str().to_owned()
            }
        }
    }

    pub(super) async fn until(&self, session: SessionId, run: RunId, done: impl Fn(&Run) -> bool) -> Run {
        let mut changes = self.store.watch(session);
        let found = timeout(PATIENCE, async {
            loop {
                let now = self.store.run(session, run).await.expect("run");
                if done(&now) {
                    return now;
                }
                changes.changed().await;
            }
        });
        found.await.expect("in time")
    }

    /// Waits until the model was asked `count` times; gives the requests.
    pub(super) async fn asked(&self, count: usize) -> Vec<Value> {
        let mut asked = self.model.asked.subscribe();
        let found = timeout(PATIENCE, asked.wait_for(|asked| asked.len() >= count)).await.expect("in time");
        found.expect("the model lives").clone()
    }

    /// Waits for an event.
    pub(super) async fn event(&self, session: SessionId, is: impl Fn(&Event) -> bool) -> Event {
        let mut changes = self.store.watch(session);
        let found = timeout(PATIENCE, async {
            loop {
                let events = self.store.events(session, 0, 10_000).await.expect("events");
                if let Some(found) = events.into_iter().map(|stored| stored.event).find(&is) {
                    return found;
                }
                changes.changed().await;
            }
        });
        found.await.expect("in time")
    }

    /// Kinds of all events but deltas and outputs.
    pub(super) async fn kinds(&self, session: SessionId) -> Vec<String> {
        let events = self.store.events(session, 0, 10_000).await.expect("events");
        events
            .into_iter()
            .map(|stored| stored.kind)
            .filter(|kind| kind != "message.delta" && kind != "tool.output")
            .collect()
    }

    /// The results and notes of the conversation, first lines only.
    pub(super) async fn told(&self, session: SessionId) -> Vec<String> {
        let items = self.store.conversation(session).await.expect("conversation");
        items
            .into_iter()
            .filter_map(|stored| match stored.item {
                Item::ToolResult { call, text, .. } => {
                    Some(format!("{call}: {}", text.lines().next().unwrap_or_default()))
                }
                Item::Note { text } => Some(format!("note: {text}")),
                Item::Words { .. } | Item::Assistant { .. } => None,
            })
            .collect()
    }

    pub(super) async fn described(&self, session: SessionId) -> Session {
        self.store.session(session).await.expect("session")
    }
}

/// The messages of a request, each as `role text`.
pub(super) fn shown(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages");
    messages
        .iter()
        .map(|message| {
            format!(
                "{} {}",
                message["role"].as_str().unwrap_or_default(),
                message["content"].as_str().unwrap_or_default()
            )
        })
        .collect()
}

fn new_resolver(base: &tempfile::TempDir, store: &Store, fake: &FakeExecutor) -> Arc<EnvironmentResolver> {
    let settings = LocalSettings {
        program: "/nonexistent".into(),
        root: base.path().join("dir"),
        state: base.path().join("state"),
        read_only: Vec::new(),
        variables: vec![("LANG".into(), "C".into()), ("MOORING_PROVIDER_KEY".into(), "k".into())],
        withheld: Vec::new(),
    };
    let resolver = EnvironmentResolver::new(store.clone(), Some(settings)).expect("resolver");
    Arc::new(resolver.with_fake(fake.clone()))
}

fn new_runs(store: &Store, resolver: &Arc<EnvironmentResolver>, url: &str, settings: &AgentSettings) -> Runs {
    let model = ModelClient::new(ModelConfig {
        base_url: url.to_owned(),
        model: "scripted".to_owned(),
        api_key: None,
        max_output_tokens: None,
        timing: ModelTiming { attempts: 1, ..ModelTiming::default() },
    });
    Runs::new(AgentParts {
        store: store.clone(),
        resolver: Arc::clone(resolver),
        model: Some(model.expect("client")),
        protected: Protected::default(),
        settings: settings.clone(),
    })
}
