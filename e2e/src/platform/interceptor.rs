//! An API server that fails when it is told to: it stands between an operator and the real one.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Of one request: an object of the API server is smaller.
const MAX_BODY_BYTES: usize = 4 << 20;
/// Writes that were hit and not looked at yet; more than one operator makes at once.
const HITS: usize = 256;

/// What happens to the next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes through, and so do all after it.
    Pass,
    /// Nothing is ever answered, nor to a write after it, which does not reach the API server. Of the writes to one path that
    /// this befalls, by turns over all lives, one does not reach the API server and the next one does.
    Silent,
    /// Each write is tried three times: the first does not reach the API server, the second reaches it, both are answered
    /// with an error, and the third goes through.
    Flaky,
}

/// A write that did not simply go through, and when: `POST pods before` it had its effect, `PATCH sessions/status after`.
pub type Write = String;

/// The proxy. It ends when it is dropped.
pub struct Interceptor {
    address: SocketAddr,
    shared: Arc<Shared>,
    hits: mpsc::Receiver<Write>,
    task: JoinHandle<std::io::Result<()>>,
}

struct Shared {
    client: Client,
    user: HeaderValue,
    /// What the path of a write has that may be hit.
    within: String,
    state: Mutex<Control>,
    hits: mpsc::Sender<Write>,
}

struct Control {
    fate: Fate,
    /// Somebody was hit, under a fate that is for one write.
    is_spent: bool,
    /// The write that a silence befell since the last decision.
    silenced: Option<Write>,
    /// Attempts at writes so far that were not to go through.
    attempts: std::collections::HashMap<String, u32>,
    /// All writes that reached the API server, with their paths.
    passed: Vec<String>,
}

/// What is done with one request.
enum Verdict {
    Forward,
    /// It comes after the one that was hit, and is not told.
    Ignore,
    Drop,
    ForwardAndDrop,
    Refuse,
    ForwardAndRefuse,
}

impl Interceptor {
    /// Forwards what comes to `listener` with the rights of `user`; `client` may impersonate everybody. Only writes in
    /// `namespace` are hit: what is left of other tests comes to its end meanwhile.
    ///
    /// # Errors
    /// When `user` is no header value, or the listener has no address.
    pub fn start(client: Client, user: &str, namespace: &str, listener: TcpListener) -> anyhow::Result<Self> {
        let address = listener.local_addr().context("the address")?;
        let (sender, hits) = mpsc::channel(HITS);
        let state = Control {
            fate: Fate::Pass,
            is_spent: false,
            silenced: None,
            attempts: std::collections::HashMap::default(),
            passed: Vec::new(),
        };
        let user = HeaderValue::from_str(user).context("a user")?;
        let within = format!("/namespaces/{namespace}/");
        let shared = Arc::new(Shared { client, user, within, state: Mutex::new(state), hits: sender });
        let router = axum::Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(axum::serve(listener, router).into_future());
        Ok(Self { address, shared, hits, task })
    }

    /// A kubeconfig that leads here.
    pub fn kubeconfig(&self) -> String {
        let address = self.address;
        serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "intercepted",
            "clusters": [{"name": "intercepted", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "intercepted", "context": {"cluster": "intercepted", "user": "intercepted"}}],
            "users": [{"name": "intercepted", "user": {}}],
        })
        .to_string()
    }

    /// Sets what happens to writes from now on.
    pub fn decide(&mut self, fate: Fate) {
        while self.hits.try_recv().is_ok() {}
        let mut control = self.shared.lock();
        control.fate = fate;
        control.is_spent = false;
        control.silenced = None;
    }

    /// Waits for the next write that did not simply go through.
    pub async fn hit(&mut self) -> Write {
        // The other end lives as long as this does.
        self.hits.recv().await.unwrap_or_default()
    }

    /// The write that [`Fate::Silent`] befell since the last decision: known before it has its effect, so whoever sees the
    /// effect finds it here, while [`Interceptor::hit`] may come later.
    pub fn silenced(&self) -> Option<Write> {
        self.shared.lock().silenced.clone()
    }

    /// The writes that reached the API server since this was asked last, as method and path.
    pub fn take_passed(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().passed)
    }
}

impl Drop for Interceptor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Control {
    /// The number of this attempt, from 1.
    fn attempt(&mut self, write: &str) -> u32 {
        let attempts = self.attempts.entry(write.to_owned()).or_default();
        *attempts += 1;
        *attempts
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Control> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is done with a write, and whether that is worth telling.
    fn judge(&self, write: &str) -> Verdict {
        let mut control = self.lock();
        let was_spent = std::mem::replace(&mut control.is_spent, true);
        match control.fate {
            Fate::Pass => Verdict::Forward,
            Fate::Silent if was_spent => Verdict::Ignore,
            Fate::Silent => match control.attempt(write) % 2 {
                1 => Verdict::Drop,
                _ => Verdict::ForwardAndDrop,
            },
            Fate::Flaky => match control.attempt(write) % 3 {
                1 => Verdict::Refuse,
                2 => Verdict::ForwardAndRefuse,
                _ => Verdict::Forward,
            },
        }
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let Some(write) = write(request.method(), request.uri()) else {
        return forward(&shared, request).await;
    };
    let path = format!("{} {}", request.method(), request.uri().path());
    let side = |verdict: &Verdict| match verdict {
        Verdict::Ignore | Verdict::Drop | Verdict::Refuse => "before",
        Verdict::Forward | Verdict::ForwardAndDrop | Verdict::ForwardAndRefuse => "after",
    };
    let verdict = if path.contains(&shared.within) { shared.judge(&path) } else { Verdict::Forward };
    let write = format!("{write} {}", side(&verdict));
    if matches!(verdict, Verdict::Drop | Verdict::ForwardAndDrop) {
        shared.lock().silenced = Some(write.clone());
    }
    let response = match verdict {
        Verdict::Ignore | Verdict::Drop | Verdict::Refuse => None,
        Verdict::Forward | Verdict::ForwardAndDrop | Verdict::ForwardAndRefuse => {
            let response = forward(&shared, request).await;
            shared.lock().passed.push(path);
            Some(response)
        }
    };
    match (verdict, response) {
        (Verdict::Forward, Some(response)) => response,
        (Verdict::Ignore, _) => std::future::pending().await,
        (Verdict::Refuse | Verdict::ForwardAndRefuse, _) => {
            // Full: nobody looks at them.
            let _ = shared.hits.try_send(write);
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        (Verdict::Drop | Verdict::ForwardAndDrop | Verdict::Forward, _) => {
            let _ = shared.hits.try_send(write);
            std::future::pending().await
        }
    }
}

/// `POST pods`, for requests that change something that counts. Events tell, and dry runs do nothing.
fn write(method: &Method, uri: &axum::http::Uri) -> Option<Write> {
    let is_dry = uri.query().is_some_and(|query| query.contains("dryRun"));
    let mut parts = uri.path().split('/').skip_while(|part| *part != "namespaces").skip(2);
    let kind = parts.next()?;
    let part = parts.nth(1).map(|part| format!("/{part}")).unwrap_or_default();
    let changes = !matches!(*method, Method::GET | Method::HEAD) && !is_dry && kind != "events";
    changes.then(|| format!("{method} {kind}{part}"))
}

async fn forward(shared: &Shared, request: Request) -> Response {
    match forwarded(shared, request).await {
        Ok(response) => response,
        Err(cause) => (StatusCode::BAD_GATEWAY, format!("{cause:#}")).into_response(),
    }
}

async fn forwarded(shared: &Shared, request: Request) -> anyhow::Result<Response> {
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().context("a path")?.as_str().to_owned();
    let mut onward = axum::http::Request::builder().method(parts.method).uri(target);
    let headers = onward.headers_mut().context("a request")?;
    for name in [header::CONTENT_TYPE, header::ACCEPT, header::USER_AGENT] {
        if let Some(value) = parts.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    headers.insert("impersonate-user", shared.user.clone());
    let body = to_bytes(body, MAX_BODY_BYTES).await.context("the body")?;
    let onward = onward.body(kube::client::Body::from(body))?;
    let response = shared.client.send(onward).await.context("the API server")?;
    let (parts, body) = response.into_parts();
    let mut headers = HeaderMap::new();
    if let Some(value) = parts.headers.get(header::CONTENT_TYPE) {
        headers.insert(header::CONTENT_TYPE, value.clone());
    }
    Ok((parts.status, headers, Body::new(body)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_something_counts() {
        let told = |method: Method, path: &str| write(&method, &path.parse().expect("a path"));
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(told(Method::POST, "/api/v1/namespaces/x/pods?fieldManager=y"), of("POST pods"));
        assert_eq!(
            told(Method::PATCH, "/apis/mooring.dev/v1alpha1/namespaces/x/sessions/one/status?force=true"),
            of("PATCH sessions/status")
        );
        assert_eq!(told(Method::DELETE, "/api/v1/namespaces/x/pods/one"), of("DELETE pods"));
        assert_eq!(told(Method::GET, "/api/v1/namespaces/x/pods/one"), None);
        assert_eq!(told(Method::POST, "/api/v1/namespaces/x/pods?&dryRun=All"), None);
        assert_eq!(told(Method::POST, "/apis/events.k8s.io/v1/namespaces/x/events"), None);
    }
}
