//! Commands that Makefiles run: variables are put in as far as text alone can say, recipe lines become
//! commands with words. Never runs anything; what only a shell could tell is left empty, as make leaves an
//! unknown variable.

use super::Source;
use crate::diagnostic::Place;
use std::collections::BTreeMap;

/// Longest text an expansion may grow to, how deep variables may name each other, and how often in one text.
const MAX_TEXT: usize = 64 * 1024;
const MAX_DEPTH: usize = 24;
const MAX_REFERENCES: usize = 4096;

/// Stands for the project's folder where a text names it as a whole path: `$(CURDIR)`, `$(abspath api)`.
pub(super) const ROOT: char = '\u{1}';

/// Stands for the user's home folder: `$(HOME)`.
pub(super) const HOME: char = '\u{2}';

/// One command of a recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Its words, unquoted.
    pub(super) words: Vec<String>,
    /// The folder it runs in, relative to the Makefile's, from a `cd` before it.
    pub(super) folder: String,
    /// The target whose recipe it is in.
    pub(super) target: String,
    pub(super) place: Place,
}

/// A text that grows, and how many variables it has cost.
#[derive(Default)]
struct Expansion {
    text: String,
    references: usize,
}

/// Variables and recipes of some Makefiles.
#[derive(Debug, Default)]
pub(super) struct Makefile {
    pub(super) variables: BTreeMap<String, Variable>,
    recipes: Vec<(String, String, Place)>,
    year: String,
}

/// A variable's text before expansion, and where it is set.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    text: String,
    pub(super) place: Place,
}

/// A path without `.` parts, and without `..` parts behind a name.
pub(super) fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| *part != ".") {
        match part {
            ".." if parts.last().is_some_and(|last| !matches!(*last, ".." | "")) => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

impl Command {
    /// The command with whole paths below the project's folder as paths from the folder it runs in.
    pub(super) fn read_in_folder(mut self) -> Command {
        let folder = self.folder.replace(ROOT, "");
        let inside = self.folder.starts_with(ROOT) || !self.folder.starts_with('/');
        let folder = without_dots(folder.trim_start_matches('/'));
        let down = folder.split('/').filter(|part| !matches!(*part, "" | "..")).count();
        let up = if down == 0 { ".".to_owned() } else { vec![".."; down].join("/") };
        for word in &mut self.words {
            *word = word.replace(ROOT, &up).replace(HOME, "");
        }
        if inside {
            self.folder = folder;
        }
        self
    }
}

impl Makefile {
    /// Reads Makefiles in the order in which they include each other.
    pub(super) fn read(files: &[Source<'_>], year: &str) -> Makefile {
        let mut makefile = Makefile { year: year.to_owned(), ..Makefile::default() };
        for file in files {
            makefile.read_one(file);
        }
        makefile
    }

    fn read_one(&mut self, file: &Source<'_>) {
        let mut targets = String::new();
        let (mut defining, mut otherwise) = (false, 0_usize);
        for (line, number) in logical_lines(file.text) {
            let place = Place { file: file.path.to_owned(), line: number, column: 1 };
            let word = line.split_whitespace().next().unwrap_or_default();
            if defining {
                defining = word != "endef";
                continue;
            }
            if let Some(recipe) = line.strip_prefix('\t') {
                self.recipes.push((targets.clone(), recipe.to_owned(), place));
                continue;
            }
            match word {
                "define" => defining = true,
                "else" => otherwise += 1,
                "endif" => otherwise = otherwise.saturating_sub(1),
                "" | "ifeq" | "ifneq" | "ifdef" | "ifndef" | "include" | "-include" | "sinclude" => {}
                _ if word.starts_with('#') => {}
                _ => {
                    if let Some(assignment) = assignment(&line) {
                        self.assign(&assignment, otherwise > 0, place);
                    } else if let Some((names, rest)) = line.split_once(':') {
                        targets = names.trim().to_owned();
                        if let Some((_, recipe)) = rest.split_once(';') {
                            self.recipes.push((targets.clone(), recipe.to_owned(), place));
                        }
                    }
                }
            }
        }
    }

    /// The first branch of a condition counts, so an assignment after `else` is one that may be overridden.
    fn assign(&mut self, assignment: &Assignment<'_>, otherwise: bool, place: Place) {
        let known = self.variables.get(assignment.name).map(|variable| variable.text.clone());
        let text = match (assignment.operator, known) {
            ("?=", Some(_)) => return,
            ("=" | ":=" | "::=" | ":::=" | "!=", Some(_)) if otherwise => return,
            ("+=", Some(known)) => format!("{known} {}", assignment.value),
            ("!=", _) => format!("$(shell {})", assignment.value),
            (_, _) => assignment.value.to_owned(),
        };
        if text.len() <= MAX_TEXT {
            self.variables.insert(assignment.name.to_owned(), Variable { text, place });
        }
    }

    /// A variable's value.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|variable| self.expand(&variable.text))
    }

    /// Every command of every recipe.
    pub(super) fn commands(&self) -> Vec<Command> {
        let mut commands = Vec::new();
        for (target, recipe, place) in &self.recipes {
            let text = self.expand(recipe);
            let mut folder = String::new();
            for words in shell_commands(text.trim_start_matches(['@', '-', '+', ' ', '\t'])) {
                if let [cd, to] = words.as_slice()
                    && cd == "cd"
                {
                    let whole = to.starts_with([ROOT, '/']) || folder.is_empty();
                    folder = if whole { to.clone() } else { format!("{folder}/{to}") };
                    continue;
                }
                let (target, folder, place) = (target.clone(), folder.clone(), place.clone());
                commands.push(Command { words, folder, target, place });
            }
        }
        commands
    }

    /// A text with its variables put in.
    fn expand(&self, text: &str) -> String {
        let mut out = Expansion::default();
        self.expand_into(&mut out, text, 0);
        out.text
    }

    fn expand_into(&self, out: &mut Expansion, text: &str, depth: usize) {
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.references += 1;
            if out.text.len() > MAX_TEXT || out.references > MAX_REFERENCES || depth > MAX_DEPTH {
                return;
            }
            out.text.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let Some(first) = rest.chars().next() else { return };
            match first {
                '$' => {
                    out.text.push('$');
                    rest = &rest[1..];
                }
                '(' | '{' => {
                    let Some(end) = closing(rest) else { return };
                    self.reference(out, &rest[1..end], depth);
                    rest = &rest[end + 1..];
                }
                _ => rest = &rest[first.len_utf8()..],
            }
        }
        out.text.push_str(rest);
    }

    fn reference(&self, out: &mut Expansion, inner: &str, depth: usize) {
        let (function, argument) = inner.split_once([' ', '\t']).unwrap_or((inner, ""));
        match function {
            "shell" => match argument.trim().strip_prefix("dirname ") {
                Some(path) => {
                    let path = self.argument(out, path, depth);
                    let folder = path.trim().rsplit_once('/').map_or(".", |(folder, _)| folder);
                    out.text.push_str(folder);
                }
                None => out.text.push_str(&self.shell(argument.trim())),
            },
            "CURDIR" | "PWD" => out.text.push(ROOT),
            // The Makefile that is read stands in the project's folder.
            "MAKEFILE_LIST" => out.text.push_str("Makefile"),
            "abspath" | "realpath" => {
                let paths = self.argument(out, argument, depth);
                out.text.push_str(&each_word(&paths, |path| match path.strip_prefix([ROOT, '/']) {
                    Some(_) => without_dots(path),
                    None => without_dots(&format!("{ROOT}/{path}")),
                }));
            }
            "dir" => {
                let paths = self.argument(out, argument, depth);
                out.text.push_str(&each_word(&paths, |path| {
                    path.rsplit_once('/').map_or_else(|| "./".to_owned(), |(folder, _)| format!("{folder}/"))
                }));
            }
            // The name of the project's folder is in no text.
            "notdir" => {
                let paths = self.argument(out, argument, depth);
                out.text.push_str(&each_word(&paths, |path| {
                    path.rsplit('/').next().unwrap_or_default().replace(ROOT, "")
                }));
            }
            "firstword" | "lastword" => {
                let words = self.argument(out, argument, depth);
                let mut words = words.split_whitespace();
                let word = if function == "firstword" { words.next() } else { words.next_back() };
                out.text.push_str(word.unwrap_or_default());
            }
            "strip" => self.expand_into(out, argument.trim(), depth + 1),
            "patsubst" | "subst" | "addprefix" | "addsuffix" => {
                let most = if function.starts_with("add") { 2 } else { 3 };
                let parts: Vec<String> = arguments(argument, most)
                    .into_iter()
                    .map(|part| self.argument(out, part, depth))
                    .collect();
                out.text.push_str(&changed_words(function, &parts));
            }
            _ if argument.is_empty() => {
                let before = out.text.len();
                if let Some(variable) = self.variables.get(function) {
                    self.expand_into(out, &variable.text, depth + 1);
                } else if function == "HOME" {
                    out.text.push(HOME);
                }
                // A tool that is set elsewhere: its name says what it is.
                if out.text[before..].trim().is_empty() && names_controller_gen(function) {
                    out.text.truncate(before);
                    out.text.push_str("controller-gen");
                }
            }
            _ => {}
        }
    }

    /// The argument of a function with its variables put in.
    fn argument(&self, out: &mut Expansion, argument: &str, depth: usize) -> String {
        let mut found = Expansion { text: String::new(), references: out.references };
        self.expand_into(&mut found, argument.trim(), depth + 1);
        out.references = found.references;
        found.text
    }

    /// The few commands whose output the text itself tells.
    fn shell(&self, command: &str) -> String {
        let is_date = command.starts_with("date") && command.contains("%Y") && !command.contains("%m");
        if says_root(command) {
            ROOT.to_string()
        } else if is_date {
            self.year.clone()
        } else if let Some(text) = command.strip_prefix("echo ")
            && let Some(said) = echoed(text)
        {
            said
        } else if command.ends_with("controller-gen") {
            "controller-gen".to_owned()
        } else {
            String::new()
        }
    }
}

/// The words that `echo` prints as they stand; nothing where the shell would do more.
fn echoed(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix("-n ").unwrap_or(text).trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    let plain = quoted.unwrap_or(text);
    let shell = ['$', '`', '|', ';', '&', '<', '>', '*', '?', '~', '\\', '"', '\'', '(', '#'];
    (!plain.contains(shell) && !plain.starts_with('-')).then(|| plain.to_owned())
}

/// A list of words, each of them changed.
fn each_word(words: &str, change: impl Fn(&str) -> String) -> String {
    words.split_whitespace().map(change).collect::<Vec<_>>().join(" ")
}

/// So many arguments of a function at most. Commas within other references separate none.
fn arguments(text: &str, most: usize) -> Vec<&str> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 && found.len() + 1 < most => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[start..]);
    found
}

/// The functions of make that change the words of a text, or parts of it. A text that would grow beyond all
/// bounds is left empty: each of them may multiply two long ones.
pub(super) fn changed_words(function: &str, parts: &[String]) -> String {
    let Some((text, given)) = parts.split_last() else { return String::new() };
    let times = match (function, given.first()) {
        ("subst", Some(from)) if !from.is_empty() => text.matches(from.as_str()).count(),
        _ => text.split_whitespace().count(),
    };
    let longest = given.iter().map(String::len).max().unwrap_or(0);
    if times.saturating_mul(longest).saturating_add(text.len()) > MAX_TEXT {
        return String::new();
    }
    match (function, parts) {
        ("addprefix", [prefix, words]) => each_word(words, |word| format!("{prefix}{word}")),
        ("addsuffix", [suffix, words]) => each_word(words, |word| format!("{word}{suffix}")),
        ("subst", [from, to, text]) if !from.is_empty() => text.replace(from.as_str(), to),
        ("patsubst", [pattern, new, words]) => {
            let (before, after) = pattern.split_once('%').unwrap_or((pattern, ""));
            each_word(words, |word| {
                let stem = word.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                match stem.filter(|stem| pattern.contains('%') || stem.is_empty()) {
                    Some(stem) => new.replacen('%', stem, 1),
                    None => word.to_owned(),
                }
            })
        }
        _ => String::new(),
    }
}

/// Returns true if a variable is named after controller-gen: `CONTROLLER_GEN`, `CONTROLLER-GEN`,
/// `controllergen`.
pub(super) fn names_controller_gen(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    name.to_ascii_lowercase().ends_with("controllergen")
}

/// Asks if a command prints the project's folder.
fn says_root(command: &str) -> bool {
    command == "pwd" || command.starts_with("git rev-parse --show-toplevel")
}

/// The text that the shell puts in for a reference that begins after `$`, as far as the text tells it, and
/// how long the reference is: `(pwd)`, `{HOME}`, `PWD`, `{ANY:-its default}`. None where it is no reference
/// that is known; then it stays as it is. A command inside an argument leaves that argument short, and no
/// other: a command in another place may be one that counts.
fn shell_reference(text: &str, in_argument: bool) -> Option<(String, usize)> {
    let of_name = |name: &str| match name {
        "PWD" => Some(ROOT),
        "HOME" => Some(HOME),
        _ => None,
    };
    if text.starts_with('(') {
        let end = closing(text)?;
        let found = says_root(text[1..end].trim()).then_some(ROOT);
        let text = found.map(String::from);
        return (text.is_some() || in_argument).then(|| (text.unwrap_or_default(), end + 1));
    }
    if text.starts_with('{') {
        let end = closing(text)?;
        let (name, default) = text[1..end].split_once(":-").unwrap_or((&text[1..end], ""));
        if let Some(found) = of_name(name) {
            return Some((found.into(), end + 1));
        }
        let plain = !default.is_empty() && !default.contains(['$', '`']);
        return plain.then(|| (default.to_owned(), end + 1));
    }
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    of_name(&text[..end]).map(|found| (found.into(), end))
}

struct Assignment<'a> {
    name: &'a str,
    operator: &'a str,
    value: &'a str,
}

fn assignment(line: &str) -> Option<Assignment<'_>> {
    let mut rest = line.trim_start();
    for word in ["export ", "override ", "unexport "] {
        rest = rest.strip_prefix(word).unwrap_or(rest).trim_start();
    }
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))?;
    let (name, after) = rest.split_at(end);
    let after = after.trim_start();
    let operator =
        ["?=", ":::=", "::=", ":=", "+=", "!=", "="].into_iter().find(|op| after.starts_with(op))?;
    if name.is_empty() {
        return None;
    }
    let value = after[operator.len()..].trim_start();
    let value = value.find(" #").map_or(value, |at| &value[..at]).trim_end();
    Some(Assignment { name, operator, value })
}

/// Lines with their continuations joined, and the number of the first.
pub(super) fn logical_lines(text: &str) -> Vec<(String, u32)> {
    let mut lines: Vec<(String, u32)> = Vec::new();
    let mut open = false;
    for (line, number) in text.lines().zip(1_u32..) {
        let (part, more) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        match lines.last_mut() {
            Some((joined, _)) if open => {
                joined.push(' ');
                joined.push_str(part.trim_start());
            }
            _ => lines.push((part.to_owned(), number)),
        }
        open = more;
    }
    lines
}

/// Where the bracket that opens a text is closed.
pub(super) fn closing(text: &str) -> Option<usize> {
    let (open, close) = if text.starts_with('(') { ('(', ')') } else { ('{', '}') };
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// The commands of a shell line, each as its words.
pub(super) fn shell_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars();
    let flush = |word: &mut Option<String>, commands: &mut Vec<Vec<String>>| {
        if let (Some(word), Some(last)) = (word.take(), commands.last_mut()) {
            last.push(word);
        }
    };
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some('"') | None, '$') => match shell_reference(
                characters.as_str(),
                word.as_ref().is_some_and(|word| word.starts_with('-')),
            ) {
                Some((found, length)) => {
                    word.get_or_insert_default().push_str(&found);
                    characters = characters.as_str()[length..].chars();
                }
                None => word.get_or_insert_default().push(c),
            },
            (Some('"') | None, '`') => {
                let inner = characters.as_str();
                let end = inner.find('`').unwrap_or(inner.len());
                word.get_or_insert_default().extend(says_root(inner[..end].trim()).then_some(ROOT));
                characters = inner[inner.len().min(end + 1)..].chars();
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '&' | '|' | ';' | '(' | ')') => {
                flush(&mut word, &mut commands);
                commands.push(Vec::new());
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => flush(&mut word, &mut commands),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    flush(&mut word, &mut commands);
    commands.retain(|words| !words.is_empty());
    commands
}
