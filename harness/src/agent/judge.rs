//! The facts around a call, gathered for authority, and the digest that binds an answer to one exact call.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mooring_authority::{Context, Counts, Decision, Message, Protected, Question, Taint, Tools, Workspace};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::conversation::calls_of;
use crate::environment::{Environment, LocalEnvironment};
use crate::session::{self, EnvironmentRef, Origin, Run, Session, StoredItem, ToolCall};
use crate::tools::{self, Call};

/// How the one taint that this harness can give is stored.
pub(super) const UNTRUSTED_WORKSPACE: &str = "untrustedWorkspace";

/// Everything that a decision is made from, read from the store after the last result was stored.
pub(super) struct Facts<'a> {
    pub(super) session: &'a Session,
    pub(super) run: &'a Run,
    pub(super) messages: &'a [session::Message],
    pub(super) items: &'a [StoredItem],
    pub(super) environment: &'a Environment,
    pub(super) protected: &'a Protected,
}

/// What becomes of `call`, which was made as `made`.
pub(super) fn judge(call: &Call, made: &ToolCall, facts: &Facts<'_>) -> Decision {
    let context = Context {
        caller_is_owner_run: is_owners(facts),
        mode: facts.session.mode,
        profile: facts.session.profile,
        tools: Tools {
            catalogue: tools::TOOLS
                .iter()
                .filter(|tool| tools::has(facts.session.profile, tool))
                .map(|tool| (*tool).to_owned())
                .collect(),
            ask: BTreeSet::new(),
            off: BTreeSet::new(),
        },
        messages: facts.messages.iter().map(message).collect(),
        taints: facts.session.taints.iter().map(|text| taint(text)).collect(),
        workspace: workspace(facts),
        protected: protected(facts),
        counts: counts(call, made, facts),
    };
    mooring_authority::decide(&call.for_authority(), &context)
}

/// SHA-256 over the exact call: session, run, call id, environment, tool and arguments, each with its length before it.
pub(super) fn digest(run: &Run, made: &ToolCall, environment: Option<&EnvironmentRef>) -> String {
    let mut hash = Sha256::new();
    let (kind, id, revision) =
        environment.map_or(("", "", ""), |it| (it.kind.as_str(), it.id.as_str(), it.revision.as_str()));
    let (session, run) = (run.session.to_string(), run.id.to_string());
    for part in ["mooring call 1", &session, &run, &made.id, kind, id, revision, &made.name, &made.arguments]
    {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A question as it is stored and shown.
pub(super) fn question_json(question: &Question) -> Value {
    json!({"title": question.title, "subject": question.subject, "why": question.why})
}

/// Why a call was refused, for the model.
pub(super) fn denied(tool: &str, decision: &Decision) -> String {
    let why: Vec<String> = decision.because().iter().map(ToString::to_string).collect();
    format!("{tool} was denied and not executed: {}. Do not try to get around it.", why.join("; "))
}

/// Whether `call` shows the model something of the workspace.
pub(super) fn reads_workspace(call: &Call) -> bool {
    match call {
        Call::Read(_)
        | Call::ListDir(_)
        | Call::Grep(_)
        | Call::Glob(_)
        | Call::Shell(_)
        | Call::ShellStatus(_) => true,
        Call::Write(_) | Call::Edit(_) | Call::Copy(_) | Call::Move(_) | Call::Remove(_) => false,
    }
}

fn is_owners(facts: &Facts<'_>) -> bool {
    facts
        .messages
        .iter()
        .find(|message| message.number == facts.run.message)
        .is_some_and(|message| message.origin == Origin::Owner)
}

fn message(message: &session::Message) -> Message {
    Message {
        number: u64::try_from(message.number).unwrap_or(0),
        origin: message.origin.clone(),
        text: message.text.clone(),
    }
}

/// What a newer version stored and this one does not know is a taint all the same.
fn taint(text: &str) -> Taint {
    match text {
        UNTRUSTED_WORKSPACE => Taint::UntrustedWorkspace,
        _ => Taint::Child,
    }
}

fn workspace(facts: &Facts<'_>) -> Option<Workspace> {
    let Environment::Local(local) = facts.environment else { return None };
    Some(Workspace {
        root: local.reference().id.clone(),
        home: path_text(local, "home"),
        tmp: path_text(local, "tmp"),
        trusted: facts.session.trusted,
        // Nobody looked: what is not known is judged at its worst.
        git: None,
    })
}

fn protected(facts: &Facts<'_>) -> Protected {
    let mut protected = facts.protected.clone();
    if let Environment::Local(local) = facts.environment {
        protected.open.extend(["home", "tmp"].iter().filter_map(|name| path_text(local, name)));
    }
    protected
}

fn path_text(local: &LocalEnvironment, name: &str) -> Option<String> {
    local.state().join(name).to_str().map(ToOwned::to_owned)
}

/// From the run's own calls up to and with this one, our own file tools only.
fn counts(call: &Call, made: &ToolCall, facts: &Facts<'_>) -> Counts {
    let until_this = || {
        let mut done = false;
        calls_of(facts.items, facts.run.id).take_while(move |other| {
            let goes_on = !done;
            done |= other.id == made.id;
            goes_on
        })
    };
    let count = |matches: &dyn Fn(&ToolCall) -> bool| {
        u32::try_from(until_this().filter(|other| matches(other)).count()).unwrap_or(u32::MAX)
    };
    let is_removal = matches!(call, Call::Remove(_));
    let is_file_change = !call.is_read() && !matches!(call, Call::Shell(_) | Call::ShellStatus(_));
    let same = |other: &ToolCall| other.name == made.name && other.arguments == made.arguments;
    Counts {
        deletions_in_turn: if is_removal { count(&|other| other.name == "Remove") } else { 0 },
        items_in_delete: u32::from(is_removal),
        identical_changes_in_turn: if is_file_change { count(&same) } else { 0 },
        ..Counts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{EnvironmentKind, RunId, RunState, SessionId};

    #[test]
    fn every_part_of_a_call_changes_its_digest() {
        let run = |session| Run {
            id: RunId::new(),
            session,
            message: 1,
            state: RunState::Running,
            interrupt_requested: false,
            counts: session::Counts::default(),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            started_at: None,
            finished_at: None,
        };
        let (first, second) = (run(SessionId::new()), run(SessionId::new()));
        let call = |id: &str, name: &str, arguments: &str| ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        let environment = |revision: &str| EnvironmentRef {
            kind: EnvironmentKind::Local,
            id: "/w".to_owned(),
            revision: revision.to_owned(),
        };
        let digests = [
            digest(&first, &call("a", "Shell", "{}"), Some(&environment("1"))),
            digest(&second, &call("a", "Shell", "{}"), Some(&environment("1"))),
            digest(&first, &call("b", "Shell", "{}"), Some(&environment("1"))),
            digest(&first, &call("a", "Shell", "{ }"), Some(&environment("1"))),
            digest(&first, &call("a", "Shel", "l{}"), Some(&environment("1"))),
            digest(&first, &call("a", "Shell", "{}"), Some(&environment("2"))),
            digest(&first, &call("a", "Shell", "{}"), None),
        ];
        let distinct: BTreeSet<&String> = digests.iter().collect();
        assert_eq!(distinct.len(), digests.len());
        assert_eq!(digests[0].len(), 64);
        assert_eq!(digests[0], digest(&first, &call("a", "Shell", "{}"), Some(&environment("1"))));
    }
}
