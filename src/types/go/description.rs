//! From a documentation comment to a description: markers dropped, Go's own rules for comment text, then the
//! conventions of Kubernetes (`TODO` lines, the `---` line). Also what a maximal length does to it.

use super::comments::{Group, is_marker};
use super::profile::{Level, Profile};

/// The description that a comment group makes.
pub(crate) fn describe(text: &str, group: &Group, profile: &Profile) -> String {
    let comments = group.comments.iter().filter_map(|comment| text.get(comment.start..comment.end));
    let comments: Vec<&str> = comments.filter(|comment| !is_marker(comment)).collect();
    let mut lines = comment_lines(&comments);
    if comments.iter().any(|comment| comment.starts_with("/*")) {
        lines.iter_mut().for_each(|line| *line = line.trim());
    }
    of_lines(&lines, profile)
}

/// The description that the lines of a comment make.
pub(crate) fn of_lines(lines: &[&str], profile: &Profile) -> String {
    let conventions = profile.at_least(Level::V0_16);
    let mut out: Vec<&str> = Vec::new();
    let mut fenced = false;
    for line in lines {
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
        }
        if conventions && !fenced {
            if line.starts_with("TODO") {
                continue;
            }
            if line.starts_with("---") {
                break;
            }
        }
        out.push(line);
    }
    if conventions {
        return out.join("\n");
    }
    // Older releases wrote a blank line as a line break of its own, which doubles it.
    let doubled: Vec<&str> = out.into_iter().map(|line| if line.is_empty() { "\n" } else { line }).collect();
    doubled.join("\n")
}

/// The text of comments as Go's `CommentGroup.Text` has it, line by line.
fn comment_lines<'t>(comments: &[&'t str]) -> Vec<&'t str> {
    let mut lines: Vec<&str> = Vec::new();
    let mut push = |line: &'t str| {
        let line = line.trim_end_matches([' ', '\t', '\r']);
        if !line.is_empty() || lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(line);
        }
    };
    for comment in comments {
        if let Some(rest) = comment.strip_prefix("//") {
            match rest.strip_prefix(' ') {
                Some(rest) => push(rest),
                None if is_directive(rest) => {}
                None => push(rest),
            }
        } else {
            let inner = comment.strip_prefix("/*").unwrap_or(comment);
            let inner = inner.strip_suffix("*/").unwrap_or(inner);
            inner.split('\n').for_each(&mut push);
        }
    }
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
}

/// `//go:generate`, `//nolint:x`, `//line 3`: notes to tools.
fn is_directive(comment: &str) -> bool {
    if ["line ", "extern ", "export "].iter().any(|word| comment.starts_with(word)) {
        return true;
    }
    let word = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    comment
        .split_once(':')
        .is_some_and(|(tool, rest)| !tool.is_empty() && word(tool) && rest.get(..1).is_some_and(word))
}

/// A description of at most `limit` bytes: cut behind the last sentence that fits, else behind a word.
pub(crate) fn truncate(description: &str, limit: usize, profile: &Profile) -> String {
    if description.len() <= limit {
        return description.to_owned();
    }
    let mut end = limit;
    while !description.is_char_boundary(end) {
        end -= 1;
    }
    let cut = &description[..end];
    if let Some((at, last)) = cut.char_indices().rfind(|(at, c)| *at > 0 && ends_sentence(*c)) {
        return cut[..at + last.len_utf8()].to_owned();
    }
    if !profile.at_least(Level::V0_17) {
        return cut.to_owned();
    }
    match cut.char_indices().rfind(|(at, c)| *at > 0 && c.is_whitespace()) {
        Some((at, _)) => format!("{}...", &cut[..at]),
        None => format!("{cut}..."),
    }
}

/// Characters that end a sentence (Unicode's `STerm`, the scripts that API descriptions are written in).
fn ends_sentence(c: char) -> bool {
    matches!(
        c,
        '!' | '.'
            | '?'
            | '\u{589}'
            | '\u{61e}'
            | '\u{61f}'
            | '\u{6d4}'
            | '\u{964}'
            | '\u{965}'
            | '\u{203c}'
            | '\u{203d}'
            | '\u{2047}'
            ..='\u{2049}'
                | '\u{3002}'
                | '\u{fe52}'
                | '\u{fe56}'
                | '\u{fe57}'
                | '\u{ff01}'
                | '\u{ff0e}'
                | '\u{ff1f}'
                | '\u{ff61}'
    )
}
