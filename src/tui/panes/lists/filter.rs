//! The language of a filter line: words, `!words`, `/regex/`, `n:namespace` (or `ns:`), `k:kind`, `-l
//! label=value`. All of it must hold, whatever the case. A part that cannot be read filters nothing and is
//! told.

use opdev_object::meta::ObjectRef;
use opdev_object::selector::{LabelSelector, SelectorError};
use opdev_state::Seen;
use regex::{Regex, RegexBuilder};
use serde_json::Value;
use std::fmt;

/// A filter, read.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    terms: Vec<(bool, Term)>,
    /// Why a part of it has no effect.
    pub problem: Option<FilterError>,
}

#[derive(Clone, Debug)]
enum Term {
    Word(String),
    Regex(Regex),
    Kind(String),
    Namespace(String),
    Labels(LabelSelector),
}

/// Why a part of a filter cannot be read.
#[derive(Clone, Debug)]
pub enum FilterError {
    Regex { pattern: String },
    Labels { text: String, error: SelectorError },
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Regex { pattern } => write!(f, "/{pattern}/ is no regular expression"),
            FilterError::Labels { text, error } => write!(f, "-l {text}: {error}"),
        }
    }
}

impl std::error::Error for FilterError {}

/// The subject of a filter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// The text on the screen, in lower case.
    pub text: &'a str,
    /// The object, where it is one; looked into only by the terms that ask.
    pub object: Option<&'a Seen>,
    /// The object that a line is about, where that is all that is known of it.
    pub about: Option<&'a ObjectRef>,
    /// The labels of that object, where they are known.
    pub labels: Option<&'a Value>,
}

impl Subject<'_> {
    fn kind(&self) -> Option<&str> {
        self.object.map(|seen| seen.key.kind.as_str()).or_else(|| self.about.map(|of| of.gvk.kind.as_str()))
    }

    fn namespace(&self) -> Option<&str> {
        let about = || self.about.map(|of| of.namespace.as_deref().unwrap_or_default());
        self.object.map(|seen| seen.key.namespace.as_deref().unwrap_or_default()).or_else(about)
    }
}

/// Returns true if a text passes a filter line.
pub fn passes(filter: &str, text: &str) -> bool {
    filter.trim().is_empty() || Filter::new(filter).text(text)
}

impl Filter {
    /// Reads a filter line.
    pub fn new(line: &str) -> Self {
        let mut filter = Filter::default();
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let (not, after) = match rest.strip_prefix('!') {
                Some(after) => (true, after),
                None => (false, rest),
            };
            let (term, after) = term(after);
            match term {
                Ok(Some(term)) => filter.terms.push((not, term)),
                Ok(None) => {}
                Err(why) => filter.problem = Some(why),
            }
            rest = after.trim_start();
        }
        filter
    }

    /// Returns true if everything passes.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns true if a line of text passes. It has no labels, so a selector lets nothing through.
    pub fn text(&self, text: &str) -> bool {
        self.is_empty() || self.passes(Subject { text: &text.to_lowercase(), ..Subject::default() })
    }

    /// The bytes of a text that words and regular expressions find.
    pub(crate) fn ranges(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        let lower = text.to_ascii_lowercase();
        let mut out = Vec::new();
        for (_, term) in self.terms.iter().filter(|(not, _)| !not) {
            match term {
                Term::Word(word) => out.extend(lower.match_indices(word).map(|(at, hit)| at..at + hit.len())),
                Term::Regex(regex) => {
                    out.extend(regex.find_iter(text).map(|hit| hit.range()).filter(|hit| !hit.is_empty()));
                }
                Term::Kind(_) | Term::Namespace(_) | Term::Labels(_) => {}
            }
        }
        out
    }

    /// Returns true if something passes.
    pub fn passes(&self, of: Subject<'_>) -> bool {
        self.terms.iter().all(|(not, term)| {
            let holds = match term {
                Term::Word(word) => of.text.contains(word.as_str()),
                Term::Regex(regex) => regex.is_match(of.text),
                Term::Kind(kind) => of.kind().is_some_and(|known| known.eq_ignore_ascii_case(kind)),
                Term::Namespace(name) => of.namespace() == Some(name),
                Term::Labels(selector) => of
                    .object
                    .map(|seen| &seen.labels)
                    .or(of.labels)
                    .is_some_and(|labels| selector.matches(labels)),
            };
            holds != *not
        })
    }
}

type Read<'a> = (Result<Option<Term>, FilterError>, &'a str);

/// The first term of a line, and what follows it.
fn term(line: &str) -> Read<'_> {
    if let Some(inside) = line.strip_prefix('/') {
        let end = closing(inside);
        let (pattern, rest) = match end {
            Some(end) => (&inside[..end], &inside[end + 1..]),
            None => (inside, ""),
        };
        if pattern.is_empty() {
            return (Ok(None), rest);
        }
        let built = RegexBuilder::new(pattern).case_insensitive(true).size_limit(1 << 20).build();
        return match built {
            Ok(regex) => (Ok(Some(Term::Regex(regex))), rest),
            // While it is being typed it may well be unfinished.
            Err(_) => (Err(FilterError::Regex { pattern: pattern.to_owned() }), rest),
        };
    }
    let (word, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
    let selector = if word == "-l" {
        let rest = rest.trim_start();
        Some(rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())))
    } else {
        word.strip_prefix("l:").map(|text| (text, rest))
    };
    if let Some((text, rest)) = selector {
        if text.is_empty() {
            return (Ok(None), rest);
        }
        return match LabelSelector::parse(text) {
            Ok(selector) => (Ok(Some(Term::Labels(selector))), rest),
            Err(error) => (Err(FilterError::Labels { text: text.to_owned(), error }), rest),
        };
    }
    // Unfinished.
    if matches!(word, "n:" | "ns:" | "k:") {
        return (Ok(None), rest);
    }
    let named = |prefix: &str| word.strip_prefix(prefix).map(str::to_owned);
    let term =
        named("k:").map(Term::Kind).or_else(|| named("n:").or_else(|| named("ns:")).map(Term::Namespace));
    let term = term.or_else(|| (!word.is_empty()).then(|| Term::Word(word.to_lowercase())));
    (Ok(term), rest)
}

/// The slash that ends a regular expression.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '/' if !escaped => return Some(at),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}
