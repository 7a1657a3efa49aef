//! Field selectors: `metadata.name=web,status.phase!=Running`.

use super::SelectorError;
use std::fmt;

/// Terms that must all match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// The terms in the order they were given.
    pub terms: Vec<Term>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The field, such as `metadata.name`.
    pub field: String,
    /// True if the value must be the same, or must differ.
    pub equal: bool,
    /// The value.
    pub value: String,
}

impl FieldSelector {
    /// Reads a selector; the empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let wrong = || SelectorError::NotAComparison { selector: text.to_owned(), part: part.to_owned() };
            let (field, equal, value) = split_term(part).ok_or_else(wrong)?;
            terms.push(Term { field: field.to_owned(), equal, value: unescape(value)? });
        }
        Ok(FieldSelector { terms })
    }

    /// Returns true if everything is selected.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns true if all terms match; `read` gives a field's value, an absent one being the empty text.
    pub fn matches<'a>(&self, read: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|term| (read(&term.field).unwrap_or_default() == term.value) == term.equal)
    }

    /// The value a field must have, where the selector asks for exactly one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let sign = if term.equal { "=" } else { "!=" };
            let value = term.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{sign}{value}", term.field)?;
        }
        Ok(())
    }
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    (0..term.len()).filter(|at| term.is_char_boundary(*at)).find_map(|at| {
        let (field, rest) = term.split_at(at);
        let (equal, value) = None
            .or_else(|| rest.strip_prefix("!=").map(|value| (false, value)))
            .or_else(|| rest.strip_prefix("==").map(|value| (true, value)))
            .or_else(|| rest.strip_prefix('=').map(|value| (true, value)))?;
        Some((field, equal, value))
    })
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                character => return Err(SelectorError::Escape { character }),
            },
            ',' | '=' => return Err(SelectorError::Unescaped { character: c }),
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_and_matched() {
        let selector = FieldSelector::parse("metadata.name=web,status.phase!=Running,x==a\\,b").unwrap();
        assert_eq!(selector.to_string(), "metadata.name=web,status.phase!=Running,x=a\\,b");
        assert_eq!(selector.exact("metadata.name"), Some("web"));
        assert_eq!(selector.exact("status.phase"), None);
        let read = |phase: &'static str| {
            selector.matches(move |field| match field {
                "metadata.name" => Some("web"),
                "status.phase" => Some(phase),
                "x" => Some("a,b"),
                _ => None,
            })
        };
        assert!(read("Pending") && !read("Running"));
        assert!(FieldSelector::parse("").unwrap().matches(|_| None));
        assert!(FieldSelector::parse("spec.nodeName=").unwrap().matches(|_| None));
    }

    #[test]
    fn nonsense_is_refused() {
        let cases = [
            ("abc", "invalid selector: 'abc'; can't understand 'abc'"),
            ("a=b=c", "invalid field selector: unescaped character in value: ="),
            ("a=b\\c", "invalid field selector: invalid escape sequence: \\c"),
        ];
        for (text, error) in cases {
            assert_eq!(FieldSelector::parse(text).unwrap_err().to_string(), error);
        }
    }
}
