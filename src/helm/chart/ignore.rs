//! `.helmignore`: patterns in the manner of Go's `filepath.Match`, plus Helm's built-in `templates/.?*`.

use super::ChartError;

/// The rules of a chart.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    pattern: String,
    negate: bool,
    folder: bool,
    whole_path: bool,
}

impl Rules {
    /// Parses a `.helmignore`; the built-in rule comes last.
    pub(super) fn parse(text: &str) -> Result<Rules, ChartError> {
        let mut rules = Rules::default();
        for line in text.trim_start_matches('\u{feff}').lines().chain(["templates/.?*"]) {
            rules.add(line.trim())?;
        }
        Ok(rules)
    }

    fn add(&mut self, line: &str) -> Result<(), ChartError> {
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
        self.rules.push(Rule {
            pattern: line.to_owned(),
            negate,
            folder,
            whole_path: rooted || line.contains('/'),
        });
        Ok(())
    }

    /// Whether a path is left out, by itself or through a folder above it.
    pub(super) fn ignores(&self, path: &str) -> bool {
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        folders
            .map(|folder| (folder, true))
            .chain([(path, false)])
            .any(|(path, dir)| self.ignores_one(path, dir))
    }

    /// Whether this very file or folder is left out.
    pub(super) fn ignores_one(&self, path: &str, dir: bool) -> bool {
        if path.is_empty() || path == "." || path == "./" {
            return false;
        }
        for rule in &self.rules {
            let matched = rule.matches(path);
            if rule.negate {
                if (rule.folder && !dir) || !matched {
                    return true;
                }
            } else if matched && (dir || !rule.folder) {
                return true;
            }
        }
        false
    }
}

impl Rule {
    fn matches(&self, path: &str) -> bool {
        let subject = if self.whole_path { path } else { path.rsplit('/').next().unwrap_or(path) };
        matches(&self.pattern, subject).unwrap_or(false)
    }
}

/// Go's `filepath.Match`; `None` where the pattern is malformed.
pub(crate) fn matches(pattern: &str, name: &str) -> Option<bool> {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    well_formed(&pattern)?;
    Some(match_from(&pattern, &name))
}

fn well_formed(pattern: &[char]) -> Option<()> {
    let mut rest = pattern;
    while let Some((&c, tail)) = rest.split_first() {
        rest = match c {
            '\\' => tail.split_first()?.1,
            '[' => class(tail, None)?.1,
            _ => tail,
        };
    }
    Some(())
}

fn match_from(pattern: &[char], name: &[char]) -> bool {
    let Some((&c, tail)) = pattern.split_first() else { return name.is_empty() };
    match c {
        '*' => {
            let mut rest = name;
            loop {
                if match_from(tail, rest) {
                    return true;
                }
                match rest.split_first() {
                    Some((&next, after)) if next != '/' => rest = after,
                    _ => return false,
                }
            }
        }
        '?' => name.split_first().is_some_and(|(&n, after)| n != '/' && match_from(tail, after)),
        '[' => name.split_first().is_some_and(|(&n, after)| {
            class(tail, Some(n)).is_some_and(|(hit, rest)| hit && match_from(rest, after))
        }),
        '\\' => match (tail.split_first(), name.split_first()) {
            (Some((&wanted, rest)), Some((&n, after))) => wanted == n && match_from(rest, after),
            _ => false,
        },
        _ => name.split_first().is_some_and(|(&n, after)| n == c && match_from(tail, after)),
    }
}

/// Reads a class after its `[`: whether the character is in it, and what follows.
fn class(pattern: &[char], c: Option<char>) -> Option<(bool, &[char])> {
    let (negated, mut rest) = match pattern.split_first() {
        Some(('^', tail)) => (true, tail),
        _ => (false, pattern),
    };
    let mut hit = false;
    let mut ranges = 0;
    loop {
        let (&low, tail) = rest.split_first()?;
        if low == ']' && ranges > 0 {
            return Some((hit != negated, tail));
        }
        let (low, tail) = class_character(low, tail)?;
        let (high, tail) = match tail.split_first() {
            Some(('-', after)) => {
                let (&high, after) = after.split_first()?;
                class_character(high, after)?
            }
            _ => (low, tail),
        };
        hit |= c.is_some_and(|c| low <= c && c <= high);
        ranges += 1;
        rest = tail;
    }
}

fn class_character(c: char, tail: &[char]) -> Option<(char, &[char])> {
    match c {
        '\\' => tail.split_first().map(|(&c, rest)| (c, rest)),
        '-' | ']' => None,
        c => Some((c, tail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_helm() {
        let rules = Rules::parse("*.tmp\n/root.txt\nsub/*.bak\ncache/\n").unwrap();
        for path in ["a.tmp", "x/b.tmp", "root.txt", "sub/a.bak", "cache/x/y", "templates/.hidden"] {
            assert!(rules.ignores(path), "{path}");
        }
        for path in ["x/root.txt", "sub/x/a.bak", "cache", "templates/a.yaml", ".helmignore"] {
            assert!(!rules.ignores(path), "{path}");
        }
        assert!(Rules::parse("a/**\n").is_err());
        assert_eq!(matches("[a-c]?*", "bxy"), Some(true));
        assert_eq!(matches("[a", "b"), None);
    }
}
