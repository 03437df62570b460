//! The corpus: what routine work, serious steps and disguises come to.

use std::collections::BTreeSet;

use super::Kind;
use crate::context::{ApiAddress, Context, Git, Profile, Protected, Remote, Taint, Tools, Workspace};
use crate::{Call, Counts, Decision, Mode, Step, decide};

/// An untrusted workspace that the chat has read, in auto mode.
pub(crate) fn context(mode: Mode, dirty: bool) -> Context {
    let tools = [
        "Read",
        "Write",
        "Edit",
        "Grep",
        "Glob",
        "ListDir",
        "Copy",
        "Move",
        "Remove",
        "Shell",
        "ShellStatus",
        "WebFetch",
    ];
    Context {
        caller_is_owner_run: true,
        mode,
        profile: Profile::Default,
        tools: Tools { catalogue: tools.iter().map(|tool| (*tool).to_owned()).collect(), ..Tools::default() },
        messages: Vec::new(),
        taints: BTreeSet::from([Taint::UntrustedWorkspace]),
        workspace: Some(Workspace {
            root: "/ws".to_owned(),
            home: Some("/home/dev".to_owned()),
            tmp: Some("/tmp/mooring".to_owned()),
            trusted: false,
            git: Some(Git {
                dirty: Some(dirty),
                branch: Some("main".to_owned()),
                default_branch: Some("main".to_owned()),
                shared_branches: Vec::new(),
                remotes: vec![Remote { name: "origin".to_owned(), url: "git://127.0.0.1/x".to_owned() }],
            }),
        }),
        protected: Protected {
            paths: vec!["/state/mooring".to_owned()],
            open: vec!["/state/mooring/home".to_owned()],
            api: vec![ApiAddress { host: "127.0.0.1".to_owned(), port: 8081 }],
            programs: Vec::new(),
        },
        counts: Counts::default(),
    }
}

pub(crate) fn shell(command: &str) -> Call {
    Call::Shell { command: command.as_bytes().to_vec(), background: false }
}

fn lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn kind_named(name: &str) -> Kind {
    match name {
        "wipe" => Kind::Wipe,
        "history" => Kind::History,
        "egress" => Kind::Egress,
        "credentials" => Kind::Credentials,
        "exfiltration" => Kind::Exfiltration,
        "install" => Kind::Install,
        "remoteCode" => Kind::RemoteCode,
        "privilege" => Kind::Privilege,
        "persistence" => Kind::Persistence,
        "safetyOff" => Kind::SafetyOff,
        "infra" => Kind::Infra,
        "publish" => Kind::Publish,
        "disrupt" => Kind::Disrupt,
        other => panic!("no kind {other}"),
    }
}

#[test]
fn routine_work_is_never_asked_about() {
    let context = context(Mode::Auto, false);
    let asked: Vec<String> = lines(include_str!("../corpus/routine.txt"))
        .filter_map(|line| {
            let decision = decide(&shell(&line.replace('⏎', "\n")), &context);
            (!decision.is_allow()).then(|| format!("{line}  →  {}", decision.because()[0]))
        })
        .collect();
    assert!(asked.is_empty(), "{} asked:\n{}", asked.len(), asked.join("\n"));
}

#[test]
fn no_serious_step_goes_unasked_or_under_another_name() {
    let missed: Vec<String> = lines(include_str!("../corpus/serious.txt"))
        .filter_map(|line| {
            let (kind, command) = line.split_once(' ').unwrap();
            let (command, dirty) =
                command.strip_suffix(" #dirty").map_or((command, false), |command| (command, true));
            let decision = decide(&shell(command), &context(Mode::Auto, dirty));
            let asks = matches!(decision, Decision::Ask { .. });
            let named = decision
                .because()
                .iter()
                .any(|reason| reason.because.risk().is_some_and(|risk| risk.kind == kind_named(kind)));
            let told: Vec<String> =
                decision.because().iter().map(|reason| reason.because.to_string()).collect();
            (!asks || !named).then(|| format!("{line}  →  {}", told.join(" + ")))
        })
        .collect();
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn no_disguise_gets_past_the_reading() {
    let wrong: Vec<String> = lines(include_str!("../corpus/adversarial.txt"))
        .filter_map(|line| {
            let (expected, json) = line.split_once(' ').unwrap();
            let command: String = serde_json::from_str(json).unwrap();
            let command = if expected == "critical" { command.replace('\0', "") } else { command };
            let decision = decide(&shell(&command), &context(Mode::Auto, true));
            let got = match &decision {
                Decision::Deny { .. } => "deny",
                Decision::Allow { .. } => "run",
                Decision::Ask { because, .. } if because[0].step == Step::Critical => "critical",
                Decision::Ask { .. } => "ask",
            };
            (got != expected).then(|| format!("{line}  →  {got}: {}", decision.because()[0]))
        })
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
