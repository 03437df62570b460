//! What a person reads on a card: the product's own words, and the call with nothing hidden in it.

use crate::call::Call;
use crate::decision::Reason;
use crate::visible::visible;

/// The question on a card. Every text is safe to show: what would not show is written as an escape, nothing is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// One line in the product's own words.
    pub title: String,
    /// The command or the paths, whole.
    pub subject: String,
    /// Why it is asked, one sentence each.
    pub why: Vec<String>,
}

impl Question {
    pub(crate) fn new(call: &Call, because: &[Reason]) -> Self {
        let title = because
            .iter()
            .find_map(|reason| reason.because.risk())
            .map_or_else(|| plain_title(call).to_owned(), |risk| risk.kind.question().to_owned());
        let why = because.iter().map(|reason| visible(&reason.to_string())).collect();
        Self { title, subject: subject(call), why }
    }
}

fn plain_title(call: &Call) -> &'static str {
    match call {
        Call::Read { .. } => "Read this file?",
        Call::ListDir { .. } => "List this folder?",
        Call::Grep { .. } | Call::Glob { .. } => "Search here?",
        Call::Write { .. } => "Write this file?",
        Call::Edit { .. } => "Change this file?",
        Call::Copy { .. } => "Copy this?",
        Call::Move { .. } => "Move this?",
        Call::Remove { .. } => "Delete this?",
        Call::Shell { background: false, .. } => "Run this command?",
        Call::Shell { background: true, .. } => "Run this command in the background?",
        Call::ShellStatus { .. } => "End this command?",
        Call::Other { .. } => "Use this tool?",
    }
}

fn subject(call: &Call) -> String {
    match call {
        Call::Shell { command, .. } => visible(&String::from_utf8_lossy(command)),
        Call::Copy { from, to } | Call::Move { from, to } => format!("{} → {}", visible(from), visible(to)),
        Call::Read { path }
        | Call::ListDir { path }
        | Call::Grep { path }
        | Call::Glob { path }
        | Call::Write { path }
        | Call::Edit { path }
        | Call::Remove { path } => visible(path),
        Call::ShellStatus { .. } => "a command in the background".to_owned(),
        Call::Other { tool, .. } => visible(tool),
    }
}
