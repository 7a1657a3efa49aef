//! Calls of controller-gen outside of Makefiles: in shell scripts, `//go:generate` lines and magefiles. Never
//! runs anything; variables are put in as far as the text alone tells, what only a shell could tell is left
//! empty.

use super::Source;
use super::makefile::{Command, ROOT, logical_lines, names_controller_gen, shell_commands, without_dots};
use crate::diagnostic::Place;
use std::collections::BTreeMap;

/// The commands of a file, by what kind of file it is. A shell script gets the arguments that the first of
/// `callers` gives it.
pub(super) fn commands(file: &Source<'_>, callers: &[Command], year: &str) -> Vec<Command> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    if name.ends_with(".go") {
        let mut found = go_generate(file);
        found.extend(mage(file));
        found
    } else {
        shell(file, arguments(file.path, callers).unwrap_or_default(), year)
    }
}

/// The words after a script in a command that calls it.
fn arguments<'c>(script: &str, callers: &'c [Command]) -> Option<&'c [String]> {
    let is_script = |word: &String| {
        let path = word.trim_start_matches([ROOT, '/']);
        without_dots(path) == script
    };
    // `chmod +x hack/a.sh` calls nothing.
    let is_before = |word: &String| {
        is_assignment(word)
            || word.starts_with('-')
            || matches!(word.as_str(), "bash" | "sh" | "env" | "exec")
    };
    callers.iter().find_map(|command| {
        let at = command.words.iter().position(|word| !is_before(word))?;
        is_script(&command.words[at]).then(|| &command.words[at + 1..])
    })
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The commands of a shell script. `cd` counts for the lines that follow.
fn shell(file: &Source<'_>, arguments: &[String], year: &str) -> Vec<Command> {
    let given = arguments.iter().zip(1..).map(|(value, at)| (at.to_string(), value.clone()));
    let mut script = Script { variables: given.collect(), own_folder: folder_of(file.path), year };
    let mut folder = String::new();
    let mut found = Vec::new();
    for (line, number) in logical_lines(file.text) {
        let line = line.trim_start();
        if line.starts_with('#') {
            continue;
        }
        // The arguments of a function are others, and `shift` counts anew.
        let is_function = line.ends_with("() {") || line.ends_with("(){");
        if is_function || line == "shift" || line.starts_with("shift ") {
            script.variables.retain(|name, _| !name.starts_with(|c: char| c.is_ascii_digit()));
        }
        script.assign_defaults(line);
        let mut inner = folder.clone();
        let in_brackets = line.starts_with('(') && line.contains("cd ");
        for words in shell_commands(&script.expand(line)) {
            let mut words: Vec<String> =
                words.into_iter().filter(|word| word != "{" && word != "}").collect();
            if words.first().is_some_and(|word| word == "cd") {
                words.retain(|word| word != "--");
            }
            match words.as_slice() {
                [cd, to] if cd == "cd" || cd == "pushd" => {
                    let above = to.starts_with('/') || to.starts_with(ROOT) || inner.is_empty();
                    inner = if above { to.clone() } else { format!("{inner}/{to}") };
                }
                [one] if is_assignment(one) => script.assign(one),
                [word, one] if matches!(word.as_str(), "export" | "local" | "readonly" | "declare") => {
                    script.assign(one);
                }
                _ => {
                    let place = Place { file: file.path.to_owned(), line: number, column: 1 };
                    found.push(Command { words, folder: inner.clone(), target: String::new(), place });
                }
            }
        }
        if !in_brackets {
            folder = inner;
        }
    }
    found
}

/// `NAME=value`.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

struct Script<'s> {
    variables: BTreeMap<String, String>,
    own_folder: &'s str,
    year: &'s str,
}

impl Script<'_> {
    fn assign(&mut self, text: &str) {
        if is_assignment(text)
            && let Some((name, value)) = text.split_once('=')
            && value.len() < 4096
            // Only a shell knows if a value that is not known takes the place of one that is.
            && (!value.is_empty() || !self.variables.contains_key(name))
        {
            self.variables.insert(name.to_owned(), value.to_owned());
        }
    }

    /// `${NAME:=default}` gives a variable its value.
    fn assign_defaults(&mut self, line: &str) {
        for part in line.split("${").skip(1) {
            let Some((name, rest)) = part.split_once(":=") else { continue };
            let Some((default, _)) = rest.split_once('}') else { continue };
            if !self.variables.contains_key(name) {
                let value = self.expand(default);
                self.assign(&format!("{name}={value}"));
            }
        }
    }

    /// A line with its variables and the few commands that text alone can answer put in.
    fn expand(&self, line: &str) -> String {
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(at) = rest.find(['$', '`']) {
            out.push_str(&rest[..at]);
            let is_dollar = rest[at..].starts_with('$');
            rest = &rest[at + 1..];
            if !is_dollar {
                let end = rest.find('`').unwrap_or(rest.len());
                out.push_str(&self.command(&rest[..end]));
                rest = rest.get(end + 1..).unwrap_or_default();
            } else if let Some(inner) = rest.strip_prefix('{') {
                let end = inner.find('}').unwrap_or(inner.len());
                out.push_str(&self.variable(&inner[..end]));
                rest = inner.get(end + 1..).unwrap_or_default();
            } else if rest.starts_with('(') {
                let end = super::makefile::closing(rest).unwrap_or(rest.len());
                out.push_str(&self.command(&rest[1..end]));
                rest = rest.get(end + 1..).unwrap_or_default();
            } else {
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
                let end = if end == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { end };
                out.push_str(&self.variable(&rest[..end]));
                rest = &rest[end..];
            }
            if out.len() > 64 * 1024 {
                break;
            }
        }
        out.push_str(rest);
        out
    }

    /// `NAME`, `NAME:-default`, `NAME:=default`.
    fn variable(&self, text: &str) -> String {
        let end = text.find([':', '-', '=', '%', '#', '[']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if let Some(value) = self.variables.get(name) {
            return value.clone();
        }
        let default =
            rest.strip_prefix(":-").or_else(|| rest.strip_prefix(":=")).or_else(|| rest.strip_prefix('-'));
        match (name, default) {
            (_, Some(default)) => self.expand(default),
            ("PWD", None) => ".".to_owned(),
            ("0" | "BASH_SOURCE", None) => format!("{ROOT}/{}/script", self.own_folder),
            (name, None) if names_controller_gen(name) => "controller-gen".to_owned(),
            _ => String::new(),
        }
    }

    fn command(&self, text: &str) -> String {
        let text = self.expand(text);
        let words = shell_commands(&text).into_iter().next().unwrap_or_default();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["pwd", ..] => ".".to_owned(),
            ["dirname", path] | ["dirname", "--", path] => folder_of(path).to_owned(),
            // `$(cd "$(dirname "$0")/.." && pwd)`
            ["cd", path] | ["cd", "--", path] | ["realpath" | "readlink", .., path] => without_dots(path),
            ["git", "rev-parse", "--show-toplevel"] => ROOT.to_string(),
            ["date", format] if format.contains("%Y") && !format.contains("%m") => self.year.to_owned(),
            _ if text.ends_with("controller-gen") => "controller-gen".to_owned(),
            _ => String::new(),
        }
    }
}

/// The commands of `//go:generate` lines; they run in the folder of their file.
fn go_generate(file: &Source<'_>) -> Vec<Command> {
    let mut found = Vec::new();
    for (line, number) in file.text.lines().zip(1_u32..) {
        let Some(command) = line.strip_prefix("//go:generate ") else { continue };
        // Not a shell: words are split at spaces, quotes keep them together.
        let mut text = String::with_capacity(command.len());
        for c in command.chars() {
            if matches!(c, ';' | '(' | ')' | '|' | '&') {
                text.push('\\');
            }
            text.push(c);
        }
        let words = shell_commands(&text).into_iter().next().unwrap_or_default();
        let place = Place { file: file.path.to_owned(), line: number, column: 1 };
        found.push(Command { words, folder: folder_of(file.path).to_owned(), target: String::new(), place });
    }
    found
}

/// Calls in a magefile: `sh.RunV("controller-gen", "crd", "paths=./...")`, the program named by a text or a
/// variable.
fn mage(file: &Source<'_>) -> Vec<Command> {
    if !file.text.contains("magefile/mage") && !file.text.contains("exec.Command") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (at, _) in file.text.match_indices('(') {
        // A call has a few lines.
        let mut most = (at + 4096).min(file.text.len());
        while !file.text.is_char_boundary(most) {
            most -= 1;
        }
        let Some(end) = super::makefile::closing(&file.text[at..most]) else { continue };
        let arguments = &file.text[at + 1..at + end];
        if arguments.contains('(') || !arguments.contains('"') {
            continue;
        }
        let words: Vec<String> = arguments.split(',').map(str::trim).filter_map(argument).collect();
        let line = file.text[..at].matches('\n').count() + 1;
        let place = Place { file: file.path.to_owned(), line: u32::try_from(line).unwrap_or(1), column: 1 };
        let folder = String::new();
        found.push(Command { words, folder, target: String::new(), place });
    }
    found
}

/// A text literal, or a variable that is named after controller-gen.
fn argument(text: &str) -> Option<String> {
    let quoted = ['"', '`'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    match quoted {
        Some(text) => Some(text.to_owned()),
        None => names_controller_gen(text).then(|| "controller-gen".to_owned()),
    }
}
