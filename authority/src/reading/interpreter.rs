//! Parts that run text: shells, `eval`, interpreters, and programs with an option that is a command.

use super::code::{self, Code};
use super::options;
use super::walk::Walk;
use super::word::{UNKNOWN, Word};
use super::wrapper::{self, Peeled};
use super::{Part, Unread, base_name};
use crate::place;

const MAX_WRAPPERS: usize = 12;

pub(crate) fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash"
            | "zsh"
            | "dash"
            | "ksh"
            | "ash"
            | "mksh"
            | "rbash"
            | "fish"
            | "pwsh"
            | "powershell"
            | "csh"
            | "tcsh"
    )
}

impl Walk {
    /// Takes wrappers off a finished part, reads what it runs, and adds it.
    pub(super) fn finish(&mut self, mut part: Part) {
        let input = self.input.take();
        part.input.clone_from(&input);
        self.finish_within(part, input.as_deref(), 0);
    }

    fn finish_within(&mut self, mut part: Part, input: Option<&str>, wrappers: usize) {
        self.note(&mut part);
        let Some(program) = part.words.first() else {
            self.push(part);
            return;
        };
        if wrappers > MAX_WRAPPERS {
            return self.give_up(Unread::TooDeep);
        }
        if base_name(&program.text).contains(UNKNOWN) || (program.glob && program.text != "[") {
            self.give_up(Unread::Program);
            self.push(part);
            return;
        }
        if self.defines(part.name()) {
            self.push(part);
            return;
        }
        for script in options::commands(&part) {
            self.subshell_script(&script);
        }
        match wrapper::peel(&part, &self.reading) {
            Peeled::Nothing => self.interpret(part, input),
            Peeled::Unknown => {
                self.give_up(Unread::Wrapper);
                self.push(part);
            }
            Peeled::Script(script) => {
                part.wraps = true;
                self.push(part);
                self.subshell_script(&script);
            }
            Peeled::Commands(commands) => {
                part.wraps = true;
                let outer = Part { words: Vec::new(), wraps: false, redirects: Vec::new(), ..part.clone() };
                let moved = matches!(part.name(), "env" | "sudo")
                    .then(|| part.value_of(&["-C", "--chdir", "-D"]))
                    .flatten();
                let outer = match moved {
                    Some(folder) => {
                        Part { folder: Some(place::resolve(part.folder.as_deref(), folder)), ..outer }
                    }
                    None => outer,
                };
                self.push(part);
                for (words, assignments) in commands {
                    let mut inner = Part { words, ..outer.clone() };
                    inner.assignments.extend(assignments);
                    self.finish_within(inner, input, wrappers + 1);
                }
            }
        }
    }

    fn interpret(&mut self, mut part: Part, input: Option<&str>) {
        let name = part.name().to_owned();
        match name.as_str() {
            shell if is_shell(shell) => return self.shell(part, input),
            "eval" => {
                let script = part.texts().collect::<Vec<_>>().join(" ");
                if script.starts_with(UNKNOWN) {
                    return self.unseen(part);
                }
                part.wraps = true;
                self.push(part);
                return self.script(&script);
            }
            "source" | "." if part.args().first().is_some_and(|word| is_stream(&word.text)) => {
                return self.shell(part, input);
            }
            "source" | "." => part.runs_unseen = part.args().first().is_none_or(Word::is_unknown),
            "alias" => {
                let values: Vec<String> = part
                    .texts()
                    .filter_map(|text| text.split_once('='))
                    .map(|(_, value)| value.to_owned())
                    .collect();
                self.push(part);
                for value in values {
                    self.subshell_script(&value);
                }
                return;
            }
            "trap" => {
                let script = part
                    .operands(&[])
                    .first()
                    .map(|word| word.text.clone())
                    .filter(|text| !text.is_empty() && text != "-");
                self.push(part);
                if let Some(script) = script {
                    self.subshell_script(&script);
                }
                return;
            }
            _ => {}
        }
        if let Some(code) = code::of(&part, input) {
            let (scripts, hidden) = code.commands();
            part.code = Some(code);
            self.push(part);
            if hidden {
                self.give_up(Unread::Program);
            }
            for script in scripts {
                self.subshell_script(&script);
            }
            return;
        }
        self.push(part);
    }

    /// A shell whose script is what a substitution prints, or a variable from outside.
    fn unseen(&mut self, mut part: Part) {
        part.runs_unseen = true;
        part.fed_by.extend(part.substituted.clone());
        self.push(part);
    }

    /// `sh -c TEXT`, `sh FILE`, or a shell that reads its input.
    fn shell(&mut self, mut part: Part, input: Option<&str>) {
        let mut script = None;
        let mut file = None;
        let mut reads_input = false;
        let mut texts = part.texts().map(str::to_owned).peekable();
        let mut takes_script = false;
        while let Some(text) = texts.next() {
            match text.as_str() {
                "--rcfile" | "--init-file" | "-o" | "+o" | "-O" | "+O" => {
                    texts.next();
                }
                "--" | "-" if !takes_script => {}
                option if option.starts_with("--") => takes_script |= option == "--command",
                option if option.starts_with(['-', '+']) => {
                    takes_script |= option.contains('c') || option.eq_ignore_ascii_case("-command");
                    reads_input |= option.contains('s');
                    if option.ends_with('o') && option.len() > 1 {
                        texts.next();
                    }
                }
                _ if takes_script => {
                    script = Some(text);
                    break;
                }
                _ => {
                    file = Some(text);
                    break;
                }
            }
        }
        let mut positional: Vec<String> = texts.collect();
        if script.is_none() {
            positional.insert(0, file.clone().unwrap_or_default());
        }
        let from_input = reads_input || file.as_deref().is_none_or(is_stream);
        let literal = || literal_input(self, &part);
        let text = script.or_else(|| from_input.then(|| input.map(str::to_owned).or_else(literal)).flatten());
        if let Some(text) = text {
            if text.starts_with(UNKNOWN) {
                return self.unseen(part);
            }
            part.wraps = true;
            self.push(part);
            let outer = self.variables.set_positional(&positional);
            self.subshell_script(&text);
            self.variables = outer;
            return;
        }
        // Nothing to read at all is an interactive shell without a terminal: it ends at once.
        part.runs_unseen = (from_input && !part.fed_by.is_empty())
            || file.is_some_and(|file| base_name(&file).contains(UNKNOWN));
        self.push(part);
    }
}

fn is_stream(file: &str) -> bool {
    ["/dev/fd/", "/dev/stdin", "/proc/self/fd"].iter().any(|start| file.starts_with(start))
}

/// What is written into a pipe by `echo`, `printf` or `cat` of a here-document, if nothing stands between.
fn literal_input(walk: &Walk, part: &Part) -> Option<String> {
    let [source] = part.fed_by.as_slice() else { return None };
    let source = walk.reading.parts.get(*source)?;
    match source.name() {
        "cat" if source.args().is_empty() => source.input.clone(),
        "echo" | "printf" if !source.args().iter().any(Word::is_unknown) => {
            let decodes =
                source.name() == "printf" || source.texts().next().is_some_and(|text| text.starts_with("-e"));
            let escapes = source.texts().any(|text| text.contains('\\') || text.contains('%'));
            let words: Vec<&str> = source
                .texts()
                .skip_while(|text| matches!(*text, "-e" | "-n" | "-ne" | "-en" | "-E"))
                .collect();
            if decodes && escapes {
                let text = words.join(" ").replace("\\n", "\n").replace("%s\n", "").replace("%s", "");
                (!text.contains(['\\', '%'])).then_some(text)
            } else {
                Some(words.join(" "))
            }
        }
        _ => None,
    }
}

impl Code {
    /// Commands that the code gives to a shell or runs, and whether it runs some that cannot be seen.
    fn commands(&self) -> (Vec<String>, bool) {
        code::commands(self)
    }
}
