//! `.helmignore`: patterns in the manner of Go's `filepath.Match`, plus Helm's built-in `templates/.?*`.

use super::error::ChartError;
use std::collections::HashMap;

/// The rules of a chart.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    pattern: String,
    /// How much of the pattern means itself, from its start.
    literal: usize,
    /// True if the rest is a star and what means itself, as in `*.tmp`.
    suffix: bool,
    negate: bool,
    folder: bool,
    whole_path: bool,
    /// Its line in the file, from 1, and its text there.
    line: u32,
    text: String,
}

impl Rules {
    /// Parses a `.helmignore`; the built-in rule comes last.
    pub(super) fn parse(text: &str) -> Result<Rules, ChartError> {
        let mut rules = Rules::default();
        let lines = text.trim_start_matches('\u{feff}').lines().chain(["templates/.?*"]);
        for (line, number) in lines.zip(1..) {
            rules.add(line.trim(), number)?;
        }
        Ok(rules)
    }

    fn add(&mut self, line: &str, number: u32) -> Result<(), ChartError> {
        let text = line.to_owned();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.contains("**") {
            return Err(ChartError::new("double-star (**) syntax is not supported"));
        }
        if matches(line, "abc").is_none() {
            return Err(ChartError::new("syntax error in pattern"));
        }
        let (negate, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (folder, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
        let (rooted, line) = line.strip_prefix('/').map_or((false, line), |rest| (true, rest));
        let special = |text: &str| text.find(['*', '?', '[', '\\']).unwrap_or(text.len());
        let literal = special(line);
        self.rules.push(Rule {
            pattern: line.to_owned(),
            literal,
            suffix: line[literal..].strip_prefix('*').is_some_and(|rest| special(rest) == rest.len()),
            negate,
            folder,
            whole_path: rooted || line.contains('/'),
            line: number,
            text,
        });
        Ok(())
    }

    /// Returns true if a path is left out, by itself or through a folder above it; each folder is judged
    /// once.
    pub(super) fn ignores<'p>(&self, path: &'p str, folders: &mut HashMap<&'p str, bool>) -> bool {
        path.match_indices('/').any(|(at, _)| {
            let folder = &path[..at];
            *folders.entry(folder).or_insert_with(|| self.ignores_one(folder, true))
        }) || self.ignores_one(path, false)
    }

    /// Returns true if this very file or folder is left out.
    pub(super) fn ignores_one(&self, path: &str, dir: bool) -> bool {
        self.first(path, dir).is_some()
    }

    /// The line and the text of the rule that leaves out a file of the chart's folder itself.
    pub(super) fn that_ignores(&self, file: &str) -> Option<(u32, &str)> {
        self.first(file, false).map(|rule| (rule.line, rule.text.as_str()))
    }

    fn first(&self, path: &str, dir: bool) -> Option<&Rule> {
        if path.is_empty() || path == "." || path == "./" {
            return None;
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        self.rules.iter().find(|rule| {
            let matched = rule.matches(if rule.whole_path { path } else { name });
            if rule.negate { (rule.folder && !dir) || !matched } else { matched && (dir || !rule.folder) }
        })
    }
}

impl Rule {
    fn matches(&self, subject: &str) -> bool {
        // Cheap, and nearly every rule ends here: the literal text before the first special character.
        let Some(rest) = subject.strip_prefix(&self.pattern[..self.literal]) else { return false };
        match &self.pattern[self.literal..] {
            "" => rest.is_empty(),
            special if self.suffix => {
                rest.strip_suffix(&special[1..]).is_some_and(|between| !between.contains('/'))
            }
            special => match_from(special, rest),
        }
    }
}

/// Go's `filepath.Match`; `None` where the pattern is malformed.
pub(crate) fn matches(pattern: &str, name: &str) -> Option<bool> {
    well_formed(pattern)?;
    Some(match_from(pattern, name))
}

/// The first character and what follows.
fn split_first(text: &str) -> Option<(char, &str)> {
    let mut rest = text.chars();
    Some((rest.next()?, rest.as_str()))
}

fn well_formed(pattern: &str) -> Option<()> {
    let mut rest = pattern;
    while let Some((c, tail)) = split_first(rest) {
        rest = match c {
            '\\' => split_first(tail)?.1,
            '[' => class(tail, None)?.1,
            _ => tail,
        };
    }
    Some(())
}

fn match_from(pattern: &str, name: &str) -> bool {
    let Some((c, tail)) = split_first(pattern) else { return name.is_empty() };
    match c {
        '*' => {
            let mut rest = name;
            loop {
                if match_from(tail, rest) {
                    return true;
                }
                match split_first(rest) {
                    Some((next, after)) if next != '/' => rest = after,
                    _ => return false,
                }
            }
        }
        '?' => split_first(name).is_some_and(|(n, after)| n != '/' && match_from(tail, after)),
        '[' => split_first(name).is_some_and(|(n, after)| {
            class(tail, Some(n)).is_some_and(|(hit, rest)| hit && match_from(rest, after))
        }),
        '\\' => match (split_first(tail), split_first(name)) {
            (Some((wanted, rest)), Some((n, after))) => wanted == n && match_from(rest, after),
            _ => false,
        },
        _ => split_first(name).is_some_and(|(n, after)| n == c && match_from(tail, after)),
    }
}

/// Reads a class after its `[`: whether the character is in it, and what follows.
fn class(pattern: &str, c: Option<char>) -> Option<(bool, &str)> {
    let (negated, mut rest) = match pattern.strip_prefix('^') {
        Some(tail) => (true, tail),
        None => (false, pattern),
    };
    let mut hit = false;
    let mut ranges = 0;
    loop {
        let (low, tail) = split_first(rest)?;
        if low == ']' && ranges > 0 {
            return Some((hit != negated, tail));
        }
        let (low, tail) = class_character(low, tail)?;
        let (high, tail) = match tail.strip_prefix('-') {
            Some(after) => {
                let (high, after) = split_first(after)?;
                class_character(high, after)?
            }
            None => (low, tail),
        };
        hit |= c.is_some_and(|c| low <= c && c <= high);
        ranges += 1;
        rest = tail;
    }
}

fn class_character(c: char, tail: &str) -> Option<(char, &str)> {
    match c {
        '\\' => split_first(tail),
        '-' | ']' => None,
        c => Some((c, tail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_helm() {
        let rules = Rules::parse("*.tmp\n/root.txt\nsub/*.bak\ncache/\nv*v.md\n").unwrap();
        for path in ["a.tmp", "x/b.tmp", "root.txt", "sub/a.bak", "cache/x/y", "x/vv.md", "templates/.hidden"]
        {
            assert!(rules.ignores(path, &mut HashMap::new()), "{path}");
        }
        for path in ["x/root.txt", "sub/x/a.bak", "cache", "v.md", "templates/a.yaml", ".helmignore"] {
            assert!(!rules.ignores(path, &mut HashMap::new()), "{path}");
        }
        let hidden = Rules::parse("# all but one\n\n!x\n").unwrap();
        assert_eq!(hidden.that_ignores("Chart.yaml"), Some((3, "!x")));
        assert_eq!(rules.that_ignores("Chart.yaml"), None);
        assert!(Rules::parse("a/**\n").is_err());
        assert_eq!(matches("[a-c]?*", "bxy"), Some(true));
        assert_eq!(matches("é?*.y", "éüx.y"), Some(true));
        assert_eq!(matches("[a", "b"), None);
    }
}
