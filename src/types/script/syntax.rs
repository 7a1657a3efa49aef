//! A script as text and as a syntax tree, and places in it. Parsing is bounded: hostile text ends in an
//! error, never in a hang. Never decides what the text means.

use opdev_types::diagnostic::{Diagnostic, Place};
use regex::Regex;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::LazyLock;
use tree_sitter::{Node, ParseOptions, Parser};

/// The largest script, in bytes.
const LARGEST: usize = 1 << 20;
/// How often the parser may report progress before it is stopped; each report is about a hundred steps.
const PATIENCE: u32 = 200_000;

/// A file and its text.
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// The place of a byte, columns counted in characters.
    pub(super) fn place(&self, byte: usize) -> Place {
        let mut byte = byte.min(self.text.len());
        while !self.text.is_char_boundary(byte) {
            byte -= 1;
        }
        let before = &self.text[..byte];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        Place {
            file: self.file.to_owned(),
            line: count(before.bytes().filter(|b| *b == b'\n').count() + 1),
            column: count(before[start..].chars().count() + 1),
        }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The syntax tree of a script.
pub(super) struct Tree(tree_sitter::Tree);

impl Tree {
    pub(super) fn root(&self) -> Node<'_> {
        self.0.root_node()
    }

    /// Where the text is no script, in bytes: the first place that the grammar cannot read.
    pub(super) fn broken(&self) -> Option<usize> {
        let root = self.root();
        if !root.has_error() {
            return None;
        }
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            if node.is_error() || node.is_missing() {
                return Some(node.start_byte());
            }
            if node.has_error() && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Some(0);
                }
            }
        }
    }
}

/// `in` and `out` before a type parameter, which the grammar does not know.
static VARIANCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"[<,]\s*(?:const\s+)?((?:in\s+out|in|out)\s)\s*[A-Za-z_$][A-Za-z0-9_$]*\s*(?:[,>=]|extends\b)",
    )
    .ok()
});

/// Names with dots behind `as` and `satisfies`, which the grammar takes for members of the whole.
static QUALIFIED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let name = r"[A-Za-z_$][A-Za-z0-9_$]*(?:\.[A-Za-z_$][A-Za-z0-9_$]*)*(?:\[\])*";
    Regex::new(&format!(r"\b(?:as|satisfies)\s+(?:[|&]\s*)?({name}(?:\s*[|&]\s*{name})*)")).ok()
});

/// The text as the grammar should see it: such names with `_` in place of their dots, every byte at its
/// place. All of it is taken out with the types.
fn without_qualified(text: &str) -> Cow<'_, str> {
    let Some(pattern) = QUALIFIED.as_ref() else { return Cow::Borrowed(text) };
    let mut bytes: Option<Vec<u8>> = None;
    for found in pattern.captures_iter(text).filter_map(|found| found.get(1)) {
        if found.as_str().contains('.') {
            let bytes = bytes.get_or_insert_with(|| text.as_bytes().to_vec());
            bytes[found.range()].iter_mut().filter(|byte| **byte == b'.').for_each(|byte| *byte = b'_');
        }
    }
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The text with blanks for `in` and `out` before type parameters; they lie inside what is taken out anyway.
fn without_variance(text: &str) -> Option<String> {
    let pattern = VARIANCE.as_ref()?;
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while let Some(found) = pattern.captures_at(text, at).and_then(|found| found.get(1)) {
        bytes[found.range()]
            .iter_mut()
            .filter(|byte| byte.is_ascii_alphabetic())
            .for_each(|byte| *byte = b' ');
        at = found.end();
    }
    if at == 0 { None } else { String::from_utf8(bytes).ok() }
}

/// Parses TypeScript; JavaScript is TypeScript without types.
///
/// # Errors
/// The text is too large, or so tangled that parsing does not end.
pub(super) fn parse(source: &Source<'_>) -> Result<Tree, Box<Diagnostic>> {
    let fail = |message: String| Box::new(Diagnostic::error(message, Some(source.place(0))));
    if source.text.len() > LARGEST {
        return Err(fail(format!("{} is larger than {} KiB", source.file, LARGEST >> 10)));
    }
    if let Some(at) = source.text.find('\0') {
        return Err(Box::new(Diagnostic::error(
            "a script cannot hold a NUL character",
            Some(source.place(at)),
        )));
    }
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into())
        .map_err(|error| fail(format!("the TypeScript grammar does not fit: {error}")))?;
    let text = without_qualified(source.text);
    let tree = run(&mut parser, &text).ok_or_else(|| tangled(source))?;
    if tree.root_node().has_error()
        && let Some(text) = without_variance(&text)
    {
        return run(&mut parser, &text).map(Tree).ok_or_else(|| tangled(source));
    }
    Ok(Tree(tree))
}

fn tangled(source: &Source<'_>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(format!("{} is too tangled to be read", source.file), Some(source.place(0))))
}

/// `None` where parsing takes too long.
fn run(parser: &mut Parser, text: &str) -> Option<tree_sitter::Tree> {
    let bytes = text.as_bytes();
    let mut left = PATIENCE;
    let mut progress = |_: &tree_sitter::ParseState| {
        left = left.saturating_sub(1);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}
