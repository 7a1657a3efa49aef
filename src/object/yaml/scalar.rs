//! How a text may be written as a scalar: libyaml's analysis and go-yaml v2's choice of style.
//! Only looks at one string; `emit` knows the surroundings.

use super::resolve::{Scalar, is_base60, resolve};

/// The style of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// The findings of libyaml's emitter about a text.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)]
struct Analysis {
    multiline: bool,
    plain: bool,
    single: bool,
    block: bool,
}

/// Returns true if a character stands as it is in libyaml's output.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}') && c != '\u{FEFF}'
}

/// Returns true if a character ends a line for libyaml.
pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn analyze(text: &str, tabs_in_blocks: bool) -> Analysis {
    if text.is_empty() {
        return Analysis { multiline: false, plain: true, single: true, block: true };
    }
    let mut indicators = text.starts_with("---") || text.starts_with("...");
    let (mut special, mut tabs) = (false, false);
    let (mut breaks, mut break_space, mut space_break) = (false, false, false);
    let (mut previous_space, mut previous_break) = (false, false);
    let mut after_white = true;
    let mut characters = text.chars().peekable();
    let mut first = true;
    while let Some(c) = characters.next() {
        let before_white = characters.peek().is_none_or(|c| matches!(c, ' ' | '\t') || is_break(*c));
        indicators |= match c {
            ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => first,
            '?' | '-' => first && before_white,
            ':' => before_white,
            '#' => after_white,
            _ => false,
        };
        tabs |= c == '\t';
        special |= !(is_printable(c) || (c == '\t' && tabs_in_blocks));
        if c == ' ' {
            break_space |= previous_break;
            previous_space = true;
            previous_break = false;
        } else if is_break(c) {
            breaks = true;
            space_break |= previous_space;
            previous_space = false;
            previous_break = true;
        } else {
            previous_space = false;
            previous_break = false;
        }
        after_white = matches!(c, ' ' | '\t') || is_break(c);
        first = false;
    }
    let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
    let edges = edge(text.chars().next()) || edge(text.chars().next_back());
    let never = space_break || special;
    Analysis {
        multiline: breaks,
        plain: !(indicators || edges || break_space || never || breaks || tabs),
        single: !(break_space || never || tabs),
        block: !(text.ends_with(' ') || never),
    }
}

/// The style go-yaml writes a string in; `key` where it stands as a simple key. Version 3 lets tabs stand in
/// blocks.
pub(super) fn string_style(text: &str, key: bool, version_3: bool) -> Style {
    if is_everyday(text.as_bytes()) {
        let string = resolve(text) == Scalar::String && !is_base60(text);
        return if string { Style::Plain } else { Style::Double };
    }
    full_style(text, key, version_3)
}

/// Returns true if a text is a word or a line of words that may stand plain, whatever is around it.
fn is_everyday(text: &[u8]) -> bool {
    let (Some(first), Some(last)) = (text.first(), text.last()) else { return false };
    if !(first.is_ascii_alphanumeric() || matches!(first, b'_' | b'/' | b'$' | b'(')) || *last == b' ' {
        return false;
    }
    text.iter().enumerate().all(|(i, byte)| match byte {
        b':' => text.get(i + 1).is_some_and(|next| *next != b' '),
        b'#' => text[i - 1] != b' ',
        b' '..=b'~' => true,
        _ => false,
    })
}

fn full_style(text: &str, key: bool, version_3: bool) -> Style {
    let analysis = analyze(text, version_3);
    let wanted = if text.contains('\n') {
        Style::Literal
    } else if resolve(text) == Scalar::String && !is_base60(text) {
        Style::Plain
    } else {
        Style::Double
    };
    let wanted = if key && analysis.multiline { Style::Double } else { wanted };
    match wanted {
        Style::Plain if analysis.plain && !(text.is_empty() && key) => Style::Plain,
        Style::Plain if analysis.single => Style::Single,
        Style::Literal if analysis.block && !key => Style::Literal,
        Style::Plain | Style::Single | Style::Double | Style::Literal => Style::Double,
    }
}

/// Returns true if a text can stand before the colon on its line.
pub(super) fn is_simple_key(text: &str) -> bool {
    text.len() <= 128 && (text.bytes().all(|b| matches!(b, b' '..=b'~')) || !text.chars().any(is_break))
}

#[cfg(test)]
mod tests {
    use super::{full_style, is_everyday, string_style};

    #[test]
    fn everyday_text_is_written_as_any_other() {
        const PARTS: [&str; 26] = [
            "a",
            "B9",
            "1",
            "0",
            ":",
            " ",
            "#",
            "-",
            "- ",
            ": ",
            " #",
            ",",
            "[",
            "'",
            "\"",
            "?",
            "yes",
            "1:30",
            "\t",
            "é",
            "\n",
            "%",
            "@",
            "/",
            "_",
            "2020-01-01",
        ];
        let mut count = 0;
        for (a, b, c) in
            PARTS.iter().flat_map(|a| PARTS.iter().flat_map(move |b| PARTS.iter().map(move |c| (a, b, c))))
        {
            let text = format!("{a}{b}{c}");
            count += usize::from(is_everyday(text.as_bytes()));
            for (key, version_3) in [(false, false), (true, false), (false, true), (true, true)] {
                let full = full_style(&text, key, version_3);
                assert_eq!(string_style(&text, key, version_3), full, "{text:?} {key} {version_3}");
            }
        }
        assert!(count > 2_000, "{count}");
    }
}
