//! From the grammar's tree to the parts of a reading.

use brush_parser::ast::{
    AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem,
    CompoundCommand, CompoundList, ExtendedTestExpr, FunctionDefinition, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, RedirectList, SeparatorOperator, SimpleCommand,
};

use super::variables::Variables;
use super::word::{Style, UNKNOWN, Word, WordReader};
use super::{MAX_CHARACTERS, MAX_PARTS, Part, Reading, Redirect, Unread, parse};
use crate::context::Workspace;
use crate::place;

/// Depth of compound commands and nested scripts taken together.
const MAX_DEPTH: usize = 40;

/// Reads scripts into one growing list of parts.
pub(super) struct Walk {
    pub(super) reading: Reading,
    pub(super) variables: Variables,
    /// Text that the part being built is given on its standard input.
    pub(super) input: Option<String>,
    depth: usize,
    characters: usize,
    conditional: bool,
    background: bool,
    feed: Vec<usize>,
    functions: Vec<String>,
    inside: Vec<String>,
}

pub(super) fn read(script: &str, workspace: &Workspace) -> Reading {
    let mut walk = Walk {
        reading: Reading::default(),
        variables: Variables::new(workspace),
        input: None,
        depth: 0,
        characters: 0,
        conditional: false,
        background: false,
        feed: Vec::new(),
        functions: Vec::new(),
        inside: Vec::new(),
    };
    walk.script(script);
    walk.reading
}

impl Walk {
    pub(super) fn give_up(&mut self, unread: Unread) {
        if !self.reading.unread.contains(&unread) {
            self.reading.unread.push(unread);
        }
    }

    /// Reads a script, the whole or a nested one, into the same list.
    pub(super) fn script(&mut self, script: &str) {
        self.characters += script.chars().count();
        if self.characters > 4 * MAX_CHARACTERS || self.depth > MAX_DEPTH {
            return self.give_up(Unread::TooDeep);
        }
        match parse(script) {
            Err(unread) => self.give_up(unread),
            Ok(program) => {
                self.depth += 4;
                for list in &program.complete_commands {
                    self.list(list);
                }
                self.depth -= 4;
            }
        }
    }

    /// Reads a script of its own shell: its variables and folder end with it.
    pub(super) fn subshell_script(&mut self, script: &str) {
        let variables = self.variables.clone();
        self.script(script);
        self.variables = variables;
    }

    fn list(&mut self, list: &CompoundList) {
        if self.depth > MAX_DEPTH {
            return self.give_up(Unread::TooDeep);
        }
        self.depth += 1;
        for item in &list.0 {
            let outer = std::mem::replace(&mut self.background, matches!(item.1, SeparatorOperator::Async));
            self.background |= outer;
            self.and_or(&item.0);
            self.background = outer;
        }
        self.depth -= 1;
    }

    fn and_or(&mut self, list: &AndOrList) {
        self.pipeline(&list.first);
        for next in &list.additional {
            match next {
                AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline),
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        if let [command] = pipeline.seq.as_slice() {
            return self.command(command);
        }
        let outer = self.feed.clone();
        for command in &pipeline.seq {
            let start = self.reading.parts.len();
            let variables = self.variables.clone();
            self.command(command);
            self.variables = variables;
            self.feed.extend(start..self.reading.parts.len());
        }
        self.feed = outer;
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                let feed = self.feed.clone();
                self.redirect_list(redirects.as_ref());
                self.compound(compound);
                self.feed = feed;
            }
            Command::Function(function) => self.function(function),
            Command::ExtendedTest(test, redirects) => {
                self.redirect_list(redirects.as_ref());
                self.test(&test.expr);
            }
        }
    }

    /// Redirects around a whole group: a part without words, and input for what is inside.
    fn redirect_list(&mut self, redirects: Option<&RedirectList>) {
        let Some(redirects) = redirects else { return };
        let mut part = Part { folder: self.variables.folder.clone(), ..Part::default() };
        for redirect in &redirects.0 {
            self.redirect(redirect, &mut part);
        }
        self.feed.extend(&part.fed_by);
        self.push(part);
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        let outer = self.conditional;
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => {
                let variables = self.variables.clone();
                self.list(&subshell.list);
                self.variables = variables;
            }
            CompoundCommand::ForClause(clause) => {
                let mut values = Vec::new();
                for value in clause.values.iter().flatten() {
                    values.extend(self.words(&value.value));
                }
                self.conditional = true;
                self.for_each(&clause.variable_name, &values, &clause.body.list);
            }
            CompoundCommand::CaseClause(clause) => {
                self.single(&clause.value.value);
                self.conditional = true;
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.single(&pattern.value);
                    }
                    if let Some(list) = &case.cmd {
                        self.list(list);
                    }
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.conditional = true;
                self.list(&clause.then);
                for other in clause.elses.iter().flatten() {
                    if let Some(condition) = &other.condition {
                        self.list(condition);
                    }
                    self.list(&other.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.conditional = true;
                self.list(&clause.0);
                self.list(&clause.1.list);
            }
            CompoundCommand::Arithmetic(command) => self.arithmetic(&command.expr.value),
            CompoundCommand::ArithmeticForClause(clause) => {
                for piece in [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten() {
                    self.arithmetic(&piece.value);
                }
                self.conditional = true;
                self.list(&clause.body.list);
            }
            CompoundCommand::Coprocess(coprocess) => self.command(&coprocess.body),
        }
        self.conditional = outer;
    }

    /// A loop's body for each literal value; once, with an unknown one, where the values cannot be told.
    fn for_each(&mut self, variable: &str, values: &[Word], body: &CompoundList) {
        let literal = !values.is_empty() && values.len() <= 12 && !values.iter().any(Word::is_unknown);
        if !literal {
            let value = values
                .first()
                .filter(|_| values.len() == 1)
                .map_or(UNKNOWN.to_string(), |word| word.text.clone());
            self.variables.set(variable, &value, false);
            return self.list(body);
        }
        for value in values {
            self.variables.set(variable, &value.text, false);
            self.list(body);
        }
    }

    fn arithmetic(&mut self, text: &str) {
        self.single(&format!("\"{}\"", text.replace('"', "")));
    }

    fn function(&mut self, function: &FunctionDefinition) {
        let name = function.fname.value.clone();
        self.functions.push(name.clone());
        self.inside.push(name);
        self.redirect_list(function.body.1.as_ref());
        let outer = std::mem::replace(&mut self.conditional, true);
        let variables = self.variables.set_positional(&[]);
        self.compound(&function.body.0);
        self.variables = variables;
        self.conditional = outer;
        self.inside.pop();
    }

    fn test(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left);
                self.test(right);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.test(inner),
            ExtendedTestExpr::UnaryTest(_, word) => {
                self.single(&word.value);
            }
            ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.single(&left.value);
                self.single(&right.value);
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        let mut part =
            Part { folder: self.variables.folder.clone(), fed_by: self.feed.clone(), ..Part::default() };
        self.input = None;
        let start = self.reading.parts.len();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, &mut part);
        }
        if let Some(word) = &simple.word_or_name {
            part.words.extend(self.words(&word.value));
        }
        let declares = matches!(part.name(), "export" | "declare" | "typeset" | "local" | "readonly");
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(_, word) if !declares => {
                    part.words.extend(self.words(&word.value));
                }
                CommandPrefixOrSuffixItem::AssignmentWord(..)
                | CommandPrefixOrSuffixItem::IoRedirect(_)
                | CommandPrefixOrSuffixItem::Word(_)
                | CommandPrefixOrSuffixItem::ProcessSubstitution(..) => self.item(item, &mut part),
            }
        }
        if part.words.is_empty() || declares {
            for (name, value) in &part.assignments {
                self.variables.set(name, &value.text, self.conditional);
            }
        }
        part.substituted = start..self.reading.parts.len();
        self.finish(part);
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, part: &mut Part) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, part),
            CommandPrefixOrSuffixItem::Word(word) => {
                let words = self.words(&word.value);
                part.words.extend(words);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => self.assignment(assignment, part),
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.process(&subshell.list, part);
                part.words.push(Word::of(format!("/dev/fd/{UNKNOWN}")));
            }
        }
    }

    fn assignment(&mut self, assignment: &Assignment, part: &mut Part) {
        let name = match &assignment.name {
            AssignmentName::VariableName(name) => name.clone(),
            AssignmentName::ArrayElementName(name, index) => {
                self.single(index);
                name.clone()
            }
        };
        let value = match &assignment.value {
            AssignmentValue::Scalar(word) => self.single(&word.value),
            AssignmentValue::Array(elements) => {
                for (key, value) in elements {
                    if let Some(key) = key {
                        self.single(&key.value);
                    }
                    self.words(&value.value);
                }
                Word::of(UNKNOWN)
            }
        };
        let value = if assignment.append { Word::of(UNKNOWN) } else { value };
        part.assignments.push((name, value));
    }

    fn process(&mut self, list: &CompoundList, part: &mut Part) {
        let start = self.reading.parts.len();
        let variables = self.variables.clone();
        let feed = std::mem::take(&mut self.feed);
        let input = self.input.take();
        self.list(list);
        self.input = input;
        self.feed = feed;
        self.variables = variables;
        part.fed_by.extend(start..self.reading.parts.len());
    }

    fn redirect(&mut self, redirect: &IoRedirect, part: &mut Part) {
        match redirect {
            IoRedirect::File(_, kind, target) => {
                let writes = match kind {
                    IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => false,
                    IoFileRedirectKind::Write
                    | IoFileRedirectKind::Append
                    | IoFileRedirectKind::ReadAndWrite
                    | IoFileRedirectKind::Clobber
                    | IoFileRedirectKind::DuplicateOutput => true,
                };
                match target {
                    IoFileRedirectTarget::Fd(_) => {}
                    IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                        self.process(&subshell.list, part);
                    }
                    IoFileRedirectTarget::Filename(word) => self.target(&word.value, writes, part),
                    IoFileRedirectTarget::Duplicate(word) => {
                        if !word.value.trim_end_matches('-').chars().all(|c| c.is_ascii_digit()) {
                            self.target(&word.value, writes, part);
                        }
                    }
                }
            }
            IoRedirect::OutputAndError(word, _) => self.target(&word.value, true, part),
            IoRedirect::HereString(_, word) => {
                let word = self.single(&word.value);
                self.input = Some(word.text);
            }
            IoRedirect::HereDocument(_, document) => {
                let text = &document.doc.value;
                self.input = Some(if document.requires_expansion {
                    let word = self.word(|reader| reader.single(text, Style::Document));
                    word.unwrap_or_default().text
                } else {
                    text.clone()
                });
            }
        }
    }

    fn target(&mut self, raw: &str, writes: bool, part: &mut Part) {
        let target = self.single(raw);
        part.redirects.push(Redirect { writes, target });
    }

    fn words(&mut self, raw: &str) -> Vec<Word> {
        self.word(|reader| reader.words(raw)).unwrap_or_default()
    }

    fn single(&mut self, raw: &str) -> Word {
        self.word(|reader| reader.single(raw, Style::Single)).unwrap_or_default()
    }

    /// Reads a word, then the scripts nested in it.
    fn word<T>(&mut self, read: impl FnOnce(&mut WordReader) -> Result<T, Unread>) -> Option<T> {
        let mut reader = WordReader::new(&self.variables);
        let result = read(&mut reader);
        let (scripts, defaults) = (reader.scripts, reader.defaults);
        for (name, value) in defaults {
            self.variables.set(&name, &value, self.conditional);
        }
        let feed = std::mem::take(&mut self.feed);
        let input = self.input.take();
        for script in scripts {
            self.subshell_script(&script);
        }
        self.input = input;
        self.feed = feed;
        result.map_err(|unread| self.give_up(unread)).ok()
    }

    /// Adds a part as it is; gives its index.
    pub(super) fn push(&mut self, part: Part) -> usize {
        if self.reading.parts.len() >= 2 * MAX_PARTS
            || self.reading.parts.iter().filter(|part| !part.wraps).count() >= MAX_PARTS
        {
            self.give_up(Unread::TooManyParts);
        } else {
            self.reading.parts.push(part);
        }
        self.reading.parts.len().saturating_sub(1)
    }

    /// Facts that a part changes for what follows, and whether it starts itself again.
    pub(super) fn note(&mut self, part: &mut Part) {
        let name = part.name().to_owned();
        part.multiplies = self.inside.contains(&name) && (self.background || !part.fed_by.is_empty());
        if matches!(name.as_str(), "cd" | "pushd") {
            let target = part.operands(&[]).first().map(|word| word.text.clone());
            self.variables.folder = match target.as_deref() {
                None if name == "cd" => Some(self.variables.home().to_owned()),
                None | Some("-") => None,
                Some(target) => Some(place::resolve(self.variables.folder.as_deref(), target)),
            }
            .filter(|folder| !folder.contains(UNKNOWN));
        } else if name == "popd" {
            self.variables.folder = None;
        }
    }

    /// Whether the script itself defines a command of that name.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.functions.iter().any(|function| function == name)
    }
}
