//! The header of a generated Go file, laid out as gofmt does: comments as they are, without space at the ends
//! of lines, one empty line where there are several.

use std::fmt;

/// Why the text of a header file cannot begin a Go file. Lines are counted from 1.
#[derive(Debug)]
pub(super) enum HeaderError {
    /// A comment has no end.
    Unclosed {
        line: usize,
    },
    NotAComment {
        line: usize,
    },
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Unclosed { line } => {
                write!(f, "line {line} of the header file opens a comment that never ends")
            }
            HeaderError::NotAComment { line } => write!(
                f,
                "line {line} of the header file is no comment, so that the generated file would not be Go"
            ),
        }
    }
}

impl std::error::Error for HeaderError {}

/// The comments of a header text, with an empty line behind them.
///
/// # Errors
/// Where the text holds something that is no comment.
pub(super) fn formatted(text: &str) -> Result<String, HeaderError> {
    let text = text.replace('\r', "");
    let mut out = String::new();
    let mut rest = text.as_str();
    let mut line = 1;
    loop {
        let space = rest.len() - rest.trim_start().len();
        let breaks = rest[..space].matches('\n').count();
        line += breaks;
        rest = &rest[space..];
        if rest.is_empty() {
            break;
        }
        if !out.is_empty() {
            out.push_str(match breaks {
                0 => " ",
                1 => "\n",
                _ => "\n\n",
            });
        }
        let comment = if rest.starts_with("//") {
            rest.lines().next().unwrap_or_default()
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").ok_or(HeaderError::Unclosed { line })?;
            &rest[..end + 2]
        } else {
            return Err(HeaderError::NotAComment { line });
        };
        line += comment.matches('\n').count();
        out.push_str(&laid_out(comment));
        rest = &rest[comment.len()..];
    }
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    Ok(out)
}

/// One comment: the indentation that all its lines share is taken away as gofmt does, and space at the ends
/// of lines.
fn laid_out(comment: &str) -> String {
    let lines: Vec<&str> = comment.split('\n').collect();
    let [first, inner @ .., last] = lines.as_slice() else { return comment.trim_end().to_owned() };
    let mut texts = inner.iter().filter(|line| !is_blank(line));
    let start = texts.next().unwrap_or(last);
    let shared = texts.fold(common(start, start), |shared, line| common(shared, line));
    let (mut shared, starred) = match shared.split_once('*') {
        // The blank before a column of stars stays, so that they stand below the first.
        Some((before, _)) => (before.strip_suffix(' ').unwrap_or(before), true),
        None => (without_first_indent(shared, first), false),
    };
    let only_end = last.split("*/").next().is_some_and(is_blank);
    if !only_end {
        shared = common(shared, last);
    }
    let mut out = first.trim_end().to_owned();
    for line in inner {
        out.push('\n');
        out.push_str(line.strip_prefix(shared).unwrap_or_default().trim_end());
    }
    out.push('\n');
    out.push_str(match (only_end, starred) {
        (true, true) => " */",
        (true, false) => "*/",
        (false, _) => last.strip_prefix(shared).unwrap_or(last).trim_end(),
    });
    out
}

/// Shared indentation less what the text is indented by relative to `/*`: that stays.
fn without_first_indent<'s>(shared: &'s str, first: &str) -> &'s str {
    let text = first.get(2..).unwrap_or_default();
    if is_blank(text) {
        let blanks = shared.bytes().rev().take(3).take_while(|byte| *byte == b' ').count();
        let kept = shared.get(..shared.len() - blanks).unwrap_or(shared);
        return if blanks == 0 { kept.strip_suffix('\t').unwrap_or(kept) } else { kept };
    }
    let space = text.get(..text.len() - text.trim_start_matches(|c| c <= ' ').len()).unwrap_or_default();
    let suffix = if space.starts_with('\t') { space.to_owned() } else { format!("  {space}") };
    shared.strip_suffix(suffix.as_str()).unwrap_or(shared)
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| byte <= b' ')
}

/// The space and stars that two lines begin with.
fn common<'a>(a: &'a str, b: &str) -> &'a str {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b && (*a <= b' ' || *a == b'*')).count();
    a.get(..same).unwrap_or_default()
}
