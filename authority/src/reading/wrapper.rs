//! Programs that run another one: which options they have, and where the inner command begins.

use super::word::{UNKNOWN, Word};
use super::{Part, Reading};

/// What is inside a part.
pub(super) enum Peeled {
    /// The part wraps nothing.
    Nothing,
    /// Commands, each with the variables set for it.
    Commands(Vec<Inner>),
    /// Text for a shell.
    Script(String),
    /// It wraps something, and it cannot be told what.
    Unknown,
}

/// The words of an inner command, and the variables set for it.
pub(super) type Inner = (Vec<Word>, Vec<(String, Word)>);

/// How one wrapper reads its arguments.
struct Wrapper {
    names: &'static [&'static str],
    /// Short options without a value.
    flags: &'static str,
    /// Short options with a value, in the same word or the next.
    valued: &'static str,
    long_flags: &'static [&'static str],
    long_valued: &'static [&'static str],
    /// Words before the inner command.
    operands: usize,
    /// Whether `NAME=value` may stand before the inner command.
    assigns: bool,
}

const PLAIN: Wrapper = Wrapper {
    names: &[],
    flags: "",
    valued: "",
    long_flags: &[],
    long_valued: &[],
    operands: 0,
    assigns: false,
};

/// Options from the manual pages: sudo(8), doas(1), env(1), nice(1), ionice(1), timeout(1), stdbuf(1), setsid(1), flock(1),
/// time(1), xargs(1), taskset(1), chrt(1), chroot(8), setpriv(1), unshare(1), strace(1), bash(1) for the builtins.
#[rustfmt::skip]
const WRAPPERS: &[Wrapper] = &[
    Wrapper { names: &["sudo"], flags: "ABbEHiKknPSsNe", valued: "CcDghpRrTtUu", assigns: true,
        long_flags: &["askpass", "background", "preserve-env", "set-home", "login", "non-interactive", "preserve-groups", "stdin", "shell", "reset-timestamp", "edit"],
        long_valued: &["close-from", "chdir", "group", "host", "prompt", "chroot", "role", "command-timeout", "type", "other-user", "user"], ..PLAIN },
    Wrapper { names: &["doas"], flags: "Lns", valued: "aCu", ..PLAIN },
    Wrapper { names: &["pkexec"], long_flags: &["disable-internal-agent", "keep-cwd"], long_valued: &["user"], ..PLAIN },
    Wrapper { names: &["env"], flags: "i0v", valued: "uC", assigns: true,
        long_flags: &["ignore-environment", "null", "debug", "list-signal-handling", "block-signal", "default-signal", "ignore-signal"],
        long_valued: &["unset", "chdir", "argv0"], ..PLAIN },
    Wrapper { names: &["nice"], flags: "0123456789-", valued: "n", long_valued: &["adjustment"], ..PLAIN },
    Wrapper { names: &["ionice"], flags: "t", valued: "cnpPu", long_flags: &["ignore"], long_valued: &["class", "classdata"], ..PLAIN },
    Wrapper { names: &["timeout", "gtimeout"], flags: "fpv", valued: "ks", operands: 1,
        long_flags: &["foreground", "preserve-status", "verbose"], long_valued: &["kill-after", "signal"], ..PLAIN },
    Wrapper { names: &["nohup", "builtin", "busybox", "toybox", "chronic", "unbuffer", "catchsegv", "fakeroot", "dbus-run-session"], ..PLAIN },
    Wrapper { names: &["stdbuf"], valued: "ioe", long_valued: &["input", "output", "error"], ..PLAIN },
    Wrapper { names: &["setsid"], flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..PLAIN },
    Wrapper { names: &["time", "gtime"], flags: "apqv", valued: "fo", long_flags: &["append", "portability", "quiet", "verbose"], long_valued: &["format", "output"], ..PLAIN },
    Wrapper { names: &["command"], flags: "p", ..PLAIN },
    Wrapper { names: &["exec"], flags: "cl", valued: "a", ..PLAIN },
    Wrapper { names: &["taskset"], flags: "ac", operands: 1, long_flags: &["all-tasks", "cpu-list"], ..PLAIN },
    Wrapper { names: &["chrt"], flags: "abdfiomRrv", valued: "DPT", operands: 1,
        long_flags: &["batch", "deadline", "fifo", "idle", "other", "rr", "verbose"], ..PLAIN },
    Wrapper { names: &["chroot"], operands: 1, long_flags: &["skip-chdir"], long_valued: &["userspec", "groups"], ..PLAIN },
    Wrapper { names: &["setarch"], flags: "RFZLXBIST3v", operands: 1, ..PLAIN },
    Wrapper { names: &["setpriv"], flags: "d", long_flags: &["no-new-privs", "keep-groups", "clear-groups", "reset-env", "init-groups"],
        long_valued: &["ruid", "euid", "reuid", "rgid", "egid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits", "pdeathsig"], ..PLAIN },
    Wrapper { names: &["unshare"], flags: "cfimnprUuCTw", valued: "RSGw", long_flags: &["fork", "mount", "net", "pid", "user", "map-root-user", "map-current-user", "uts", "ipc", "cgroup"], long_valued: &["root", "wd", "setuid", "setgid"], ..PLAIN },
    Wrapper { names: &["strace", "ltrace"], flags: "cCdfFhiqrtTvVxyzZkD", valued: "abeEIoOpPsSuUX", ..PLAIN },
    Wrapper { names: &["xargs", "gxargs"], flags: "0oprtx", valued: "aEdILnPs",
        long_flags: &["null", "open-tty", "interactive", "no-run-if-empty", "verbose", "exit", "show-limits", "replace", "eof", "max-lines"],
        long_valued: &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"], ..PLAIN },
    Wrapper { names: &["firejail"], long_flags: &["quiet", "noprofile", "private", "net", "noroot"], ..PLAIN },
    Wrapper { names: &["proot"], flags: "0v", valued: "rbqwkS", long_flags: &["root-id"], long_valued: &["rootfs", "bind", "cwd"], ..PLAIN },
    Wrapper { names: &["screen"], flags: "dDmALqxRUl", valued: "SsTtcehp", ..PLAIN },
    Wrapper { names: &["caffeinate"], flags: "dimsu", valued: "tw", ..PLAIN },
    Wrapper { names: &["xvfb-run"], flags: "al", valued: "efnpsw", long_flags: &["auto-servernum"], long_valued: &["server-args", "server-num"], ..PLAIN },
    Wrapper { names: &["runuser"], flags: "", valued: "ugG", long_valued: &["user", "group", "supp-group"], ..PLAIN },
    Wrapper { names: &["systemd-run"], flags: "dGPqrtS", valued: "EHMpu",
        long_flags: &["scope", "user", "system", "pty", "pipe", "quiet", "collect", "wait", "no-block", "same-dir", "remain-after-exit"],
        long_valued: &["unit", "property", "description", "slice", "uid", "gid", "nice", "working-directory", "setenv", "on-active", "on-boot", "on-calendar", "on-unit-active"], ..PLAIN },
];

/// Project runners: `name subcommand… COMMAND`, with options without values between.
const RUNNERS: &[(&str, &[&str])] = &[
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("rye", &["run"]),
    ("hatch", &["run"]),
    ("bundle", &["exec"]),
    ("pnpm", &["exec"]),
    ("yarn", &["exec"]),
    ("mise", &["exec", "--"]),
    ("npm", &["exec"]),
    ("npx", &[]),
];

/// Takes one wrapper off.
pub(super) fn peel(part: &Part, read: &Reading) -> Peeled {
    let name = part.name();
    if let Some(words) = by_its_usual_name(part) {
        return Peeled::Commands(vec![(words, Vec::new())]);
    }
    match name {
        "find" | "fd" | "fdfind" => return find(part),
        "watch" => return watch(part),
        "flock" => return flock(part),
        "hyperfine" => return benchmark(part),
        "script" | "su" | "nix-shell" | "nix" => return script_option(part),
        "env" if part.texts().any(splits_a_string) => return split_string(part),
        "command"
            if part
                .texts()
                .take_while(|text| text.starts_with('-'))
                .any(|text| text.contains(['v', 'V'])) =>
        {
            return Peeled::Nothing;
        }
        "docker" | "podman" | "nerdctl" | "docker-compose" => return container(part),
        "kubectl" | "oc" => return after_dashes(part),
        "parallel" => return Peeled::Unknown,
        _ => {}
    }
    if let Some((_, subcommand)) = RUNNERS.iter().find(|(runner, _)| *runner == name) {
        return runner(part, subcommand);
    }
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) else {
        return Peeled::Nothing;
    };
    let Some((start, assignments)) = wrapper.start(part.args()) else { return Peeled::Unknown };
    let words: Vec<Word> = part.args().get(start..).unwrap_or_default().to_vec();
    if matches!(name, "xargs" | "gxargs") {
        return Peeled::Commands(xargs(part, words, read));
    }
    if words.is_empty() {
        return Peeled::Nothing;
    }
    Peeled::Commands(vec![(words, assignments)])
}

/// The same command under the name that the rest of the reading knows: `git-push` of git's own folder, `hub push`,
/// `python3 -m pip`.
fn by_its_usual_name(part: &Part) -> Option<Vec<Word>> {
    let name = part.name();
    let args = part.args();
    let renamed = |first: &[&str], rest: &[Word]| {
        Some(first.iter().map(|text| Word::of(*text)).chain(rest.iter().cloned()).collect())
    };
    if let Some(subcommand) = name.strip_prefix("git-").filter(|name| !name.is_empty()) {
        return renamed(&["git", subcommand], args);
    }
    if name == "hub" {
        return renamed(&["git"], args);
    }
    match args {
        [option, module, rest @ ..] if name.starts_with("python") && option.text == "-m" => {
            matches!(module.text.as_str(), "pip" | "pipx" | "twine" | "keyring")
                .then(|| renamed(&[module.text.as_str()], rest))
                .flatten()
        }
        _ => None,
    }
}

impl Wrapper {
    /// Where the inner command begins, and what is set for it. `None` for an option that is not known.
    fn start(&self, args: &[Word]) -> Option<(usize, Vec<(String, Word)>)> {
        let mut at = 0;
        while let Some(word) = args.get(at) {
            let text = word.text.as_str();
            if text == "--" {
                at += 1;
                break;
            }
            let Some(rest) =
                text.strip_prefix('-').filter(|rest| !rest.is_empty() || self.flags.contains('-'))
            else {
                break;
            };
            at += match rest.strip_prefix('-') {
                Some(long) => self.long(long)?,
                None => self.cluster(rest)?,
            };
        }
        at += self.operands;
        let mut assignments = Vec::new();
        while self.assigns
            && let Some((name, value)) = args.get(at).and_then(|word| word.text.split_once('='))
        {
            assignments.push((name.to_owned(), Word::of(value)));
            at += 1;
        }
        Some((at, assignments))
    }

    fn long(&self, option: &str) -> Option<usize> {
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        // getopt_long(3) takes any unambiguous beginning of a name.
        let known = |names: &[&str]| names.iter().any(|known| known.starts_with(name));
        if known(self.long_valued) {
            Some(if value.is_some() { 1 } else { 2 })
        } else if known(self.long_flags) {
            Some(1)
        } else {
            None
        }
    }

    fn cluster(&self, cluster: &str) -> Option<usize> {
        for (at, option) in cluster.char_indices() {
            if self.valued.contains(option) {
                let is_last = at + option.len_utf8() == cluster.len();
                return Some(if is_last { 2 } else { 1 });
            }
            if !self.flags.contains(option) {
                return None;
            }
        }
        Some(1)
    }
}

/// `docker exec [options] CONTAINER COMMAND`, also of compose. What runs there is read as if it ran here.
fn container(part: &Part) -> Peeled {
    let wrapper = Wrapper {
        flags: "ditT",
        valued: "euw",
        long_flags: &["detach", "interactive", "tty", "privileged", "no-TTY"],
        long_valued: &["env", "env-file", "user", "workdir", "detach-keys", "index"],
        operands: 1,
        ..PLAIN
    };
    let exec = part.texts().take(8).position(|text| text == "exec");
    let Some(from) = exec.map(|at| at + 1) else { return Peeled::Nothing };
    let args = part.args().get(from..).unwrap_or_default();
    let Some((start, _)) = wrapper.start(args) else { return Peeled::Unknown };
    let words = args.get(start..).unwrap_or_default().to_vec();
    if words.is_empty() { Peeled::Nothing } else { Peeled::Commands(vec![(words, Vec::new())]) }
}

/// `kubectl exec POD -- COMMAND`. The outer part keeps its own risk.
fn after_dashes(part: &Part) -> Peeled {
    let at = part.texts().position(|text| text == "--");
    let words = at.map(|at| part.args()[at + 1..].to_vec()).unwrap_or_default();
    if words.is_empty() { Peeled::Nothing } else { Peeled::Commands(vec![(words, Vec::new())]) }
}

fn runner(part: &Part, subcommand: &[&str]) -> Peeled {
    let texts: Vec<&str> = part.texts().collect();
    let Some(rest) = texts.strip_prefix(subcommand) else { return Peeled::Nothing };
    let options = rest.iter().take_while(|text| text.starts_with('-')).count();
    let words = part.args()[subcommand.len() + options..].to_vec();
    if words.is_empty() { Peeled::Nothing } else { Peeled::Commands(vec![(words, Vec::new())]) }
}

fn splits_a_string(text: &str) -> bool {
    text.starts_with("-S")
        || text.starts_with("--split-string")
        || text.starts_with("-vS")
        || text.starts_with("-iS")
}

fn split_string(part: &Part) -> Peeled {
    let at = part.texts().position(splits_a_string).unwrap_or(0);
    let rest: Vec<&str> = part.texts().skip(at).collect();
    let (first, others) = rest.split_first().map_or(("", &[][..]), |(first, others)| (*first, others));
    let inline = first
        .strip_prefix("--split-string=")
        .or_else(|| first.split_once('S').map(|(_, text)| text))
        .unwrap_or("");
    let inline = if first == "--split-string" { "" } else { inline };
    Peeled::Script(format!("env {inline} {}", others.join(" ")))
}

/// watch(1) joins its words and gives them to a shell.
fn watch(part: &Part) -> Peeled {
    let wrapper = Wrapper {
        flags: "bcdegprtwx",
        valued: "nq",
        long_flags: &[
            "beep",
            "color",
            "differences",
            "errexit",
            "chgexit",
            "precise",
            "no-title",
            "no-wrap",
            "exec",
        ],
        long_valued: &["interval"],
        ..PLAIN
    };
    let Some((start, _)) = wrapper.start(part.args()) else { return Peeled::Unknown };
    let words: Vec<&str> = part.texts().skip(start).collect();
    if words.is_empty() { Peeled::Nothing } else { Peeled::Script(words.join(" ")) }
}

/// hyperfine(1) gives each of its words to a shell.
fn benchmark(part: &Part) -> Peeled {
    const VALUED: [&str; 10] =
        ["-w", "--warmup", "-m", "--min-runs", "-M", "--max-runs", "-r", "--runs", "-n", "--command-name"];
    let texts: Vec<&str> = part.operands(&VALUED).into_iter().map(|word| word.text.as_str()).collect();
    if texts.is_empty() { Peeled::Nothing } else { Peeled::Script(texts.join("\n")) }
}

fn flock(part: &Part) -> Peeled {
    let wrapper = Wrapper {
        flags: "sxeunoFv",
        valued: "wE",
        long_flags: &["shared", "exclusive", "unlock", "nonblock", "close", "no-fork", "verbose"],
        long_valued: &["timeout", "conflict-exit-code"],
        operands: 1,
        ..PLAIN
    };
    let Some((start, _)) = wrapper.start(part.args()) else { return Peeled::Unknown };
    let words = part.args().get(start..).unwrap_or_default();
    match words {
        [] => Peeled::Nothing,
        [option, script, ..] if matches!(option.text.as_str(), "-c" | "--command") => {
            Peeled::Script(script.text.clone())
        }
        words => Peeled::Commands(vec![(words.to_vec(), Vec::new())]),
    }
}

/// Programs with an option whose value is a command line: `su -c`, `script -c`, `nix-shell --run`, `nix develop -c`.
fn script_option(part: &Part) -> Peeled {
    let options: &[&str] = match part.name() {
        "nix-shell" => &["--run", "--command"],
        "nix" => {
            let after = part.texts().position(|text| matches!(text, "-c" | "--command"));
            let words = after.map(|at| part.args()[at + 1..].to_vec()).unwrap_or_default();
            return if words.is_empty() {
                Peeled::Nothing
            } else {
                Peeled::Commands(vec![(words, Vec::new())])
            };
        }
        _ => &["-c", "--command", "-qc", "-lc", "-qec"],
    };
    let long = options.iter().find_map(|option| part.value_of(&[option]));
    long.map_or(Peeled::Nothing, |script| Peeled::Script(script.to_owned()))
}

/// `find … -exec COMMAND … ;`, with the place searched standing for what is found.
fn find(part: &Part) -> Peeled {
    let found = found_by(part);
    let mut commands = Vec::new();
    let mut at = 0;
    let args = part.args();
    let is_fd = part.name() != "find";
    while let Some(word) = args.get(at) {
        at += 1;
        let starts = match word.text.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" => !is_fd,
            "-x" | "-X" | "--exec" | "--exec-batch" => is_fd,
            _ => false,
        };
        if starts {
            let length = args[at..]
                .iter()
                .position(|word| matches!(word.text.as_str(), ";" | "+"))
                .unwrap_or(args.len() - at);
            let mut words: Vec<Word> = args[at..at + length].to_vec();
            let placed = words.iter_mut().fold(false, |placed, word| {
                let has = word.text.contains("{}");
                word.text = word.text.replace("{}", &found);
                placed || has
            });
            if is_fd && !placed {
                words.push(Word::of(found.clone()));
            }
            commands.push((words, Vec::new()));
            at += length;
        }
    }
    if commands.is_empty() { Peeled::Nothing } else { Peeled::Commands(commands) }
}

/// What a search finds, as a path: the start itself where nothing narrows it.
pub(super) fn found_by(part: &Part) -> String {
    let start = match part.name() {
        "find" => part
            .args()
            .first()
            .map(|word| word.text.as_str())
            .filter(|text| !text.starts_with(['-', '(', '!'])),
        _ => None,
    };
    let start = start.unwrap_or(".");
    if !is_narrowed(part) {
        return start.to_owned();
    }
    let names: Vec<&str> = part
        .words
        .windows(2)
        .filter(|pair| matches!(pair[0].text.as_str(), "-name" | "-iname"))
        .map(|pair| pair[1].text.as_str())
        .collect();
    let start = start.trim_end_matches('/');
    match names.as_slice() {
        [name] if part.name() == "find" => format!("{start}/{UNKNOWN}/{name}"),
        _ => format!("{start}/{UNKNOWN}"),
    }
}

/// Whether a search has a condition on what it finds besides its type.
pub(crate) fn is_narrowed(part: &Part) -> bool {
    part.name() != "find"
        || part.words.windows(3).any(|three| {
            let [before, test, value] = three else { return false };
            let test = test.text.as_str();
            let is_wide = matches!(before.text.as_str(), "!" | "-not")
                || matches!(value.text.as_str(), "*" | "**" | "*.*" | "." | "./*" | "/*" | "");
            matches!(
                test,
                "-name"
                    | "-iname"
                    | "-path"
                    | "-ipath"
                    | "-wholename"
                    | "-regex"
                    | "-iregex"
                    | "-mtime"
                    | "-mmin"
                    | "-atime"
                    | "-ctime"
                    | "-newer"
                    | "-size"
                    | "-user"
                    | "-perm"
                    | "-links"
                    | "-lname"
                    | "-samefile"
                    | "-inum"
            ) && !is_wide
        })
        || part.texts().any(|text| text == "-empty")
}

/// The commands `xargs` would run, with what is known of the arguments it reads.
fn xargs(part: &Part, words: Vec<Word>, read: &Reading) -> Vec<Inner> {
    let mut words = if words.is_empty() { vec![Word::of("echo")] } else { words };
    let given = given_to_xargs(part, read);
    let replaced = part
        .value_of(&["-I", "--replace"])
        .map(str::to_owned)
        .or_else(|| part.has('i', "").then(|| "{}".to_owned()));
    if let Some(token) = replaced.filter(|token| !token.is_empty()) {
        // With -I an argument is a whole line (xargs(1)).
        let value = given.join(" ");
        for word in &mut words {
            word.text = word.text.replace(&token, &value);
        }
        return vec![(words, Vec::new())];
    }
    // Without input GNU xargs runs the command once, as it stands.
    let bare = given.iter().any(|text| text.starts_with(UNKNOWN)).then(|| (words.clone(), Vec::new()));
    words.extend(given.into_iter().map(Word::of));
    bare.into_iter().chain([(words, Vec::new())]).collect()
}

fn given_to_xargs(part: &Part, read: &Reading) -> Vec<String> {
    let nothing_known = || vec![UNKNOWN.to_string()];
    if let Some(input) = part.input.as_deref().filter(|input| !input.contains(UNKNOWN)) {
        return input.split_ascii_whitespace().take(64).map(str::to_owned).collect();
    }
    let Some(source) = part.fed_by.first().and_then(|index| read.parts.get(*index)) else {
        return nothing_known();
    };
    let has_operand =
        source.operands(&[]).iter().any(|word| word.text.starts_with(['/', '~']) || word.text.contains(".."));
    match source.name() {
        "echo" | "printf" if !source.args().iter().any(Word::is_unknown) => {
            let text: Vec<&str> =
                source.texts().filter(|text| !text.starts_with('-') && !text.starts_with('%')).collect();
            let text = text.join(" ").replace("\\n", " ").replace("\\0", " ");
            text.split_ascii_whitespace().map(str::to_owned).collect()
        }
        "find" => vec![found_by(source)],
        // Everything that is here, unless something between leaves some of it out.
        "ls" if !has_operand && part.fed_by.len() == 1 && source.operands(&[]).is_empty() => {
            vec![".".to_owned()]
        }
        // Every tracked file.
        "git" if source.texts().all(|text| matches!(text, "ls-files" | "-z")) => vec![".".to_owned()],
        "git" | "rg" | "grep" | "ls" | "fd" | "fdfind" if !has_operand => vec![format!("./{UNKNOWN}")],
        _ => nothing_known(),
    }
}
