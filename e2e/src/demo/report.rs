//! What a person sees while the demo runs, and the transcript that stays.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::fixture::Event;

/// Lines of a result that the transcript shows.
const SHOWN_LINES: usize = 14;

/// Prints to standard output and to `transcript.txt`.
pub(super) struct Report {
    transcript: File,
    start: Instant,
    checks: usize,
}

impl Report {
    pub(super) fn new(folder: &Path) -> anyhow::Result<Self> {
        let transcript = File::create(folder.join("transcript.txt")).context("transcript")?;
        Ok(Self { transcript, start: Instant::now(), checks: 0 })
    }

    pub(super) fn title(&mut self, text: &str) -> anyhow::Result<()> {
        let seconds = self.start.elapsed().as_secs_f64();
        self.line(&format!("\n== {text}  ({seconds:.1} s)"))
    }

    pub(super) fn say(&mut self, text: &str) -> anyhow::Result<()> {
        self.line(&format!("   {text}"))
    }

    /// One thing that must hold.
    ///
    /// # Errors
    /// When it does not, with `otherwise`: what was found instead.
    pub(super) fn check(&mut self, what: &str, holds: bool, otherwise: &str) -> anyhow::Result<()> {
        self.checks += 1;
        if holds {
            return self.line(&format!("   ok  {what}"));
        }
        self.line(&format!("   NO  {what}"))?;
        bail!("not so: {what}; found: {otherwise}")
    }

    /// A conversation as a person would read it.
    pub(super) fn transcript(&mut self, events: &[Event]) -> anyhow::Result<()> {
        for event in events {
            for line in told(event) {
                self.line(&line)?;
            }
        }
        Ok(())
    }

    pub(super) fn where_to_look(&mut self, folder: &Path) -> anyhow::Result<()> {
        let seconds = self.start.elapsed().as_secs_f64();
        self.line(&format!("\n{} checks hold, {seconds:.1} s. Where to look:", self.checks))?;
        let places = [
            ("transcript.txt", "this text"),
            ("tree", "the folder the agent worked in, with its history"),
            ("remote/intervals.git", "the repository it pushed to"),
            ("state", "sessions, events and the token (SQLite)"),
            ("state.log", "the harness's log"),
            ("model-requests.json", "what the model was asked, and which step of the script answered"),
        ];
        for (name, what) in places {
            self.line(&format!("   {}  {what}", folder.join(name).display()))?;
        }
        Ok(())
    }

    fn line(&mut self, text: &str) -> anyhow::Result<()> {
        writeln!(self.transcript, "{text}")?;
        // A reader that went away (a closed pipe) does not end the demo.
        let _ = writeln!(std::io::stdout(), "{text}");
        Ok(())
    }
}

fn told(event: &Event) -> Vec<String> {
    let data = &event.data;
    let field = |name: &str| data[name].as_str().unwrap_or_default();
    match event.kind.as_str() {
        "message.created" => indented("person", field("text")),
        "message.completed" if !field("text").is_empty() => indented("agent ", field("text")),
        "tool.call" => indented("call  ", &format!("{} {}", field("tool"), field("arguments"))),
        "tool.result" => indented("result", field("text")),
        "approval.requested" => {
            let question = &data["question"];
            let words = |name: &str| question[name].as_str().unwrap_or_default().to_owned();
            let why = question["why"].as_array().into_iter().flatten().filter_map(|why| why.as_str());
            let lines: Vec<String> = std::iter::once(format!("{} {}", words("title"), words("subject")))
                .chain(why.map(str::to_owned))
                .collect();
            indented("asks  ", &lines.join("\n"))
        }
        "approval.resolved" => indented("answer", field("state")),
        "run.resumed" => indented("run   ", "goes on after a restart"),
        "run.finished" => {
            let words = ["state", "outcome", "code", "message"].map(field);
            indented("run   ", words.join(" ").trim_end())
        }
        _ => Vec::new(),
    }
}

fn indented(who: &str, text: &str) -> Vec<String> {
    let all: Vec<&str> = text.lines().collect();
    let mut lines: Vec<String> = all
        .iter()
        .take(SHOWN_LINES)
        .enumerate()
        .map(|(at, line)| format!("   {} | {line}", if at == 0 { who } else { "      " }))
        .collect();
    if all.len() > SHOWN_LINES {
        lines.push(format!("          | … {} more lines", all.len() - SHOWN_LINES));
    }
    lines
}
