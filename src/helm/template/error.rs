//! Errors in Go's own words: where a template could not be parsed or executed, with the chain of includes
//! that led there. Excerpts of the source are made elsewhere, from `Frame`'s line and column.

use std::fmt;

use super::context::Compat;
use super::go_error::GoError;

/// A template that does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The template file.
    pub name: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1, when known. Go does not print it.
    pub column: Option<usize>,
    /// The message, without the place.
    pub reason: String,
}

impl ParseError {
    /// The text Helm prints: the place and the last part of the reason.
    #[must_use]
    pub fn helm_text(&self) -> String {
        let reason = self.reason.rsplit(": ").next().unwrap_or(&self.reason);
        format!("parse error at ({}:{}): {reason}", self.name, self.line)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template: {}:{}: {}", self.name, self.line, self.reason)
    }
}

impl std::error::Error for ParseError {}

/// One template on the way to the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The file the text was parsed from.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes from the start of the line, from 0, as Go prints it.
    pub column: usize,
    /// The template being executed: a file or a defined name.
    pub executing: String,
    /// The expression at that place.
    pub expression: String,
    /// The words between this frame and the next one (or the cause), such as `error calling include: `.
    pub then: String,
}

/// A template that failed while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecError {
    /// From the template that was asked for to the one that failed.
    pub frames: Vec<Frame>,
    /// Why, without places.
    pub cause: String,
    /// The message, when the chart itself called `fail` or `required`.
    pub failed: Option<String>,
}

impl ExecError {
    /// An error before any template ran.
    #[must_use]
    pub fn plain(cause: impl Into<String>) -> ExecError {
        ExecError { frames: Vec::new(), cause: cause.into(), failed: None }
    }

    /// The text Helm prints: short for `fail` and `required`; otherwise Go's own, which Helm 4 breaks into
    /// lines where every link of the chain is an error of a template.
    #[must_use]
    pub fn helm_text(&self, compat: Compat) -> String {
        if let (Some(message), Some(first)) = (&self.failed, self.frames.first()) {
            return format!("execution error at ({}:{}:{}): {message}", first.file, first.line, first.column);
        }
        match compat {
            Compat::V3_19 | Compat::V3 => self.to_string(),
            Compat::V4_1 | Compat::V4 => self.lines().unwrap_or_else(|| self.to_string()),
        }
    }

    /// Helm 4's form: each link's place, what was executed, and the message, indented.
    fn lines(&self) -> Option<String> {
        let mut links: Vec<String> = Vec::new();
        for (i, frame) in self.frames.iter().enumerate() {
            let words = frame.then.strip_prefix("error calling ");
            // Words of `tpl` around an inner error end the chain for Helm, and so does a function's own
            // error.
            let plain = words.is_none_or(|name| name.find(": ") == name.len().checked_sub(2));
            let last = i + 1 == self.frames.len();
            let missing = self.cause.starts_with("template: no template ");
            if !plain || (last && words.is_some() && !missing) {
                return None;
            }
            let rest = ExecError { frames: self.frames[i..].to_vec(), ..self.clone() }.to_string();
            let link = link(rest.strip_prefix("template: ")?)?;
            if links.last() != Some(&link) {
                links.push(link);
            }
            if last && words.is_some() {
                links.push(format!("{}\n", self.cause));
            }
        }
        (!links.is_empty()).then(|| links.concat().trim().to_owned())
    }

    /// The place that failed, deepest in the chain.
    #[must_use]
    pub fn innermost(&self) -> Option<&Frame> {
        self.frames.last()
    }
}

/// One link of Helm 4's form, cut out of Go's text as Helm does.
fn link(text: &str) -> Option<String> {
    let (place, executing, message) = executing(text).or_else(|| {
        let (place, message) = text.rsplit_once(": ")?;
        Some((place, None, message))
    })?;
    let message = message.split(" template:").next().unwrap_or_default();
    let mut link = format!("{place}\n  ");
    if let Some((name, expression)) = executing {
        link.push_str(&format!("executing \"{name}\" at <{expression}>:\n    "));
    }
    if !message.is_empty() {
        link.push_str(&format!("{message}\n"));
    }
    Some(link)
}

type Executing<'t> = (&'t str, Option<(&'t str, &'t str)>, &'t str);

/// Place, what was executed where, and message; nothing for a name with a quote in it.
fn executing(text: &str) -> Option<Executing<'_>> {
    let (place, rest) = text.split_once(": executing ")?;
    let (name, rest) = rest.strip_prefix('"')?.split_once('"')?;
    let (expression, message) = rest.strip_prefix(" at <")?.split_once(">: ")?;
    Some((place, Some((name, expression)), message))
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for frame in &self.frames {
            write!(
                f,
                "template: {}:{}:{}: executing {} at <{}>: {}",
                frame.file,
                frame.line,
                frame.column,
                opdev_object::go::quote::quote_bytes(frame.executing.as_bytes()),
                frame.expression,
                frame.then
            )?;
        }
        f.write_str(&self.cause)
    }
}

impl std::error::Error for ExecError {}

/// The error of a function; execution adds the place.
#[derive(Clone, Debug)]
pub struct FuncError {
    /// The words, or the words before `inner`.
    pub(super) text: String,
    /// The chart's own message (`fail`, `required`).
    pub(super) failed: bool,
    /// An error of a template that the function executed.
    pub(super) inner: Option<Box<ExecError>>,
}

/// Bytes of a message that are told: an argument stands in it, and may be as large as an output.
pub(super) const LONGEST_MESSAGE: usize = 64 << 10;

/// A message without what nobody reads to its end.
fn cut(mut text: String) -> String {
    if text.len() > LONGEST_MESSAGE {
        let end = (0..=LONGEST_MESSAGE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let more = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("… ({more} bytes more)"));
        text.shrink_to_fit();
    }
    text
}

impl FuncError {
    /// An error with these words.
    pub fn new(text: impl Into<String>) -> FuncError {
        FuncError { text: cut(text.into()), failed: false, inner: None }
    }

    /// The chart said so.
    pub(super) fn failed(message: String) -> FuncError {
        FuncError { text: cut(message), failed: true, inner: None }
    }

    /// An error of an inner template, with words before it.
    pub(super) fn wrap(text: impl Into<String>, inner: ExecError) -> FuncError {
        FuncError { text: text.into(), failed: false, inner: Some(Box::new(inner)) }
    }
}

impl fmt::Display for FuncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.inner.as_ref().map_or(Ok(()), |inner| write!(f, "{inner}"))
    }
}

impl From<String> for FuncError {
    fn from(text: String) -> FuncError {
        FuncError::new(text)
    }
}

impl From<&str> for FuncError {
    fn from(text: &str) -> FuncError {
        FuncError::new(text)
    }
}

impl<E: GoError> From<E> for FuncError {
    fn from(error: E) -> FuncError {
        FuncError::new(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_between_two_characters() {
        let told = FuncError::new("\u{e9}".repeat(LONGEST_MESSAGE)).to_string();
        assert!(
            told.len() < LONGEST_MESSAGE + 64 && told.ends_with("… (65536 bytes more)"),
            "{}",
            told.len()
        );
        assert_eq!(FuncError::new("short").to_string(), "short");
    }
}
