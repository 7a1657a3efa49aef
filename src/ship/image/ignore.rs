//! `.dockerignore`, with the patterns of Docker: each is relative to the root, `**` is any number of folders,
//! a later pattern wins, `!` takes back, and what lies in a folder that is left out is left out.

use regex::Regex;
use std::fmt;

/// The rules of a `.dockerignore`.
#[derive(Debug, Default)]
pub struct IgnoreFile {
    rules: Vec<(Regex, bool)>,
}

/// A line of a `.dockerignore` that is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The line; lines count from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".dockerignore:{}: {:?} is no pattern", self.line, self.text)
    }
}

impl std::error::Error for PatternError {}

impl IgnoreFile {
    /// Reads the text of such a file.
    ///
    /// # Errors
    /// The line and the pattern that is none.
    pub fn parse(text: &str) -> Result<IgnoreFile, PatternError> {
        let mut rules = Vec::new();
        for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            if line.starts_with('#') {
                continue;
            }
            let line = line.trim();
            let (takes_back, pattern) = match line.strip_prefix('!') {
                Some(rest) => (true, rest.trim()),
                None => (false, line),
            };
            let parts: Vec<&str> =
                pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
            if parts.is_empty() {
                continue;
            }
            let regex = Regex::new(&expression(&parts.join("/")))
                .map_err(|_| PatternError { line: at + 1, text: line.to_owned() })?;
            rules.push((regex, takes_back));
        }
        Ok(IgnoreFile { rules })
    }

    /// Returns true if a path is left out.
    pub fn ignores(&self, path: &str) -> bool {
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        let names: Vec<&str> = folders.chain([path]).collect();
        let mut ignored = false;
        for (rule, takes_back) in &self.rules {
            if ignored == *takes_back && names.iter().any(|name| rule.is_match(name)) {
                ignored = !takes_back;
            }
        }
        ignored
    }
}

fn expression(pattern: &str) -> String {
    let mut text = "^".to_owned();
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => {
                // `**/` may be no folder at all.
                text.push_str(if rest.next_if_eq(&'/').is_some() { "(.*/)?" } else { ".*" });
            }
            '*' => text.push_str("[^/]*"),
            '?' => text.push_str("[^/]"),
            '\\' => {
                if let Some(plain) = rest.next() {
                    text.push_str(&regex::escape(&plain.to_string()));
                }
            }
            '[' | ']' => text.push(c),
            '^' | '-' => text.push(c),
            plain => text.push_str(&regex::escape(&plain.to_string())),
        }
    }
    text.push('$');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_dockers() {
        let text = "# a comment\n\n/helm-charts/old\n**/*.md\n!README.md\nsecret?.txt\n[ab].yaml\n./bin/\nconfig/**/tmp\n";
        let file = IgnoreFile::parse(text).unwrap();
        for yes in [
            "helm-charts/old",
            "helm-charts/old/values.yaml",
            "NOTES.md",
            "helm-charts/web/NOTES.md",
            "secret1.txt",
            "a.yaml",
            "bin/opdev",
            "config/tmp/a",
            "config/a/b/tmp",
        ] {
            assert!(file.ignores(yes), "{yes}");
        }
        for no in [
            "README.md",
            "helm-charts/older",
            "x/helm-charts/old",
            "secret12.txt",
            "c.yaml",
            "x/bin/a",
            "tmp",
        ] {
            assert!(!file.ignores(no), "{no}");
        }
        let all = IgnoreFile::parse("**\n!watches.yaml\n!helm-charts\n").unwrap();
        assert!(
            all.ignores("values.yaml") && !all.ignores("watches.yaml") && !all.ignores("helm-charts/a/b")
        );
        let error = IgnoreFile::parse("a\n[b").unwrap_err();
        assert_eq!(error.to_string(), ".dockerignore:2: \"[b\" is no pattern");
    }
}
