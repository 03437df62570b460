//! Commands that stand in options and variables of other programs.

use super::Part;

/// Options whose value is a command for the shell, or a program: of which program, and how they begin.
/// From tar(1), rsync(1), git(1), ssh(1), rg(1), man(1), sort(1).
const COMMAND_OPTIONS: &[(&str, &str)] = &[
    ("tar", "--checkpoint-action=exec="),
    ("tar", "--to-command="),
    ("tar", "--use-compress-program="),
    ("tar", "--info-script="),
    ("tar", "--rsh-command="),
    ("rsync", "--rsh="),
    ("git", "--upload-pack="),
    ("git", "--receive-pack="),
    ("git", "--upload-pac="),
    ("git", "--exec="),
    ("git", "--extcmd="),
    ("git", "--open-files-in-pager="),
    ("ssh", "-oProxyCommand="),
    ("ssh", "ProxyCommand="),
    ("ssh", "LocalCommand="),
    ("rg", "--pre="),
    ("rg", "--hostname-bin="),
    ("man", "--pager="),
    ("man", "--html="),
    ("sort", "--compress-program="),
];

/// Options whose next word is such a command.
const COMMAND_WORDS: &[(&str, &str)] = &[
    ("rsync", "-e"),
    ("rsync", "--rsh"),
    ("rg", "--pre"),
    ("man", "-P"),
    ("tar", "-I"),
    ("tar", "-F"),
    ("git", "-x"),
    ("git", "--exec"),
    ("git", "--tree-filter"),
    ("git", "--index-filter"),
    ("git", "--msg-filter"),
    ("npx", "-c"),
    ("npx", "--call"),
    ("tmux", "-d"),
];

/// Editors and debuggers that run what follows a mark.
const MARKED: &[(&str, &[&str])] = &[
    ("vim", &[":!", "!", "+!", "+:!"]),
    ("vi", &[":!", "!", "+!", "+:!"]),
    ("nvim", &[":!", "!", "+!", "+:!"]),
    ("ex", &["!", "+!"]),
    ("gdb", &["shell ", "!"]),
    ("less", &["+!"]),
];

/// Variables whose value is a command.
const COMMAND_VARIABLES: &[&str] = &[
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_ASKPASS",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "PROMPT_COMMAND",
    "SSH_ASKPASS",
    "LESSOPEN",
    "MANPAGER",
];

/// Every command that a part's options and variables would have run, as shell text.
pub(super) fn commands(part: &Part) -> Vec<String> {
    let name = part.name();
    let texts: Vec<&str> = part.texts().collect();
    let attached = COMMAND_OPTIONS
        .iter()
        .filter(|(program, _)| *program == name)
        .flat_map(|(_, option)| texts.iter().filter_map(move |text| text.strip_prefix(option)));
    let next = texts
        .windows(2)
        .filter(|pair| COMMAND_WORDS.iter().any(|(program, option)| *program == name && *option == pair[0]))
        .filter(|pair| {
            name != "git"
                || pair[0].ends_with("filter")
                || texts.iter().any(|text| matches!(*text, "rebase" | "difftool"))
        })
        .map(|pair| pair[1]);
    let marked = MARKED.iter().filter(|(program, _)| *program == name).flat_map(|(_, marks)| {
        texts.iter().filter_map(|text| marks.iter().find_map(|mark| text.strip_prefix(mark)))
    });
    let set = part.assignments.iter().filter(|(name, _)| COMMAND_VARIABLES.contains(&name.as_str()));
    let mut scripts: Vec<String> = attached.chain(next).chain(marked).map(str::to_owned).collect();
    scripts.extend(set.map(|(_, value)| value.text.clone()));
    match name {
        "git" => scripts.extend(of_git(&texts)),
        "sed" => scripts.extend(texts.iter().filter_map(|text| sed_command(text))),
        _ => {}
    }
    scripts.retain(|script| !script.trim().is_empty());
    scripts
}

/// `git bisect run …`, `git submodule foreach …`, and configuration given for one call.
fn of_git(texts: &[&str]) -> Vec<String> {
    const RUN: [&str; 5] =
        ["core.sshcommand", "core.pager", "core.editor", "core.fsmonitor", "sequence.editor"];
    let run = texts.windows(2).position(|pair| matches!(pair, ["bisect", "run"] | ["submodule", "foreach"]));
    let rest = run.map(|at| {
        texts[at + 2..].iter().filter(|text| **text != "--recursive").copied().collect::<Vec<_>>().join(" ")
    });
    let configured = texts.windows(2).filter(|pair| pair[0] == "-c").filter_map(|pair| {
        let (key, value) = pair[1].split_once('=')?;
        let key = key.to_ascii_lowercase();
        let alias = value.strip_prefix('!').filter(|_| key.starts_with("alias."));
        alias.or_else(|| RUN.contains(&key.as_str()).then_some(value)).map(str::to_owned)
    });
    let pager = texts
        .iter()
        .filter(|_| texts.contains(&"grep"))
        .filter_map(|text| text.strip_prefix("-O"))
        .map(str::to_owned);
    // git-remote-ext(1): a command whose blanks are written `% `.
    let transport =
        texts.iter().filter_map(|text| text.strip_prefix("ext::")).map(|text| text.replace("% ", "\\ "));
    rest.into_iter().chain(configured).chain(pager).chain(transport).collect()
}

/// The command of GNU sed's `e`, alone or behind an address: `e id`, `1e id`, `$e id`.
fn sed_command(script: &str) -> Option<String> {
    let rest = script.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '$' | ','));
    rest.strip_prefix("e ").map(str::to_owned)
}
