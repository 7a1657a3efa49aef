//! `pattern` of a schema: Go's regular expression syntax translated to the `regex` crate's.
//! The two differ in classes: Go's are ASCII and do not nest.

use regex::Regex;

/// A pattern and its compiled form, or what is wrong with it.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    compiled: Result<Regex, String>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        let compiled =
            Regex::new(&translate(text)).map_err(|error| go_words(text, &last_line(&error.to_string())));
        Pattern { text: text.to_owned(), compiled }
    }

    /// The expression; the error says why it cannot be compiled.
    pub(crate) fn regex(&self) -> Result<&Regex, &str> {
        self.compiled.as_ref().map_err(String::as_str)
    }

    /// Whether it matches somewhere in `value`; the error says why it cannot be compiled.
    pub(crate) fn is_match(&self, value: &str) -> Result<bool, &str> {
        match &self.compiled {
            Ok(regex) => Ok(regex.is_match(value)),
            Err(error) => Err(error),
        }
    }
}

fn last_line(error: &str) -> String {
    error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The mistakes people make, in Go's words.
fn go_words(text: &str, error: &str) -> String {
    match error {
        "unclosed group" => format!("missing closing ): `{text}`"),
        "unclosed character class" => {
            format!("missing closing ]: `{}`", &text[text.rfind('[').unwrap_or(0)..])
        }
        other => other.to_owned(),
    }
}

fn translate(go: &str) -> String {
    let mut out = String::with_capacity(go.len() + 16);
    let mut chars = go.chars().peekable();
    let mut class = Class::Outside;
    while let Some(c) = chars.next() {
        let at_start = class == Class::Start;
        if at_start {
            class = Class::Inside;
        }
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str("[\\t\\n\\f\\r ]"),
                Some('S') => out.push_str("[^\\t\\n\\f\\r ]"),
                Some('b') if class == Class::Outside => out.push_str("(?-u:\\b)"),
                Some('B') if class == Class::Outside => out.push_str("(?-u:\\B)"),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if class == Class::Outside => {
                out.push('[');
                class = Class::Start;
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' if chars.peek() == Some(&':') => {
                // A named class such as [:alpha:] is the same in both.
                out.push('[');
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            ']' if class == Class::Inside && !at_start => {
                out.push(']');
                class = Class::Outside;
            }
            '[' | ']' | '&' | '~' if class == Class::Inside => out.extend(['\\', c]),
            other => out.push(other),
        }
    }
    out
}

#[derive(PartialEq)]
enum Class {
    Outside,
    Start,
    Inside,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_syntax_means_what_it_means_in_go() {
        let cases = [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[a-z]([-a-z0-9]*[a-z0-9])?$", "web-0", true),
            (r"^[a-z]([-a-z0-9]*[a-z0-9])?$", "Web", false),
            (r"^[[a]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[a&&b]+$", "&", true),
            (r"^[\w.]+$", "a_.9", true),
            (r"^[^\d]$", "5", false),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^\S+\s\S+$", "a b", true),
            ("b", "abc", true),
            (r"^(\d+)(\.\d+)?(Ki|Mi|Gi)?$", "64Mi", true),
        ];
        for (pattern, value, expected) in cases {
            assert_eq!(Pattern::new(pattern).is_match(value), Ok(expected), "{pattern} on {value}");
        }
        assert!(Pattern::new("a(").is_match("a").is_err());
    }
}
