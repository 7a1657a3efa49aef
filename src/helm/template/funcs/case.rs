//! Letter case: `upper`, `title`, `snakecase` and their kin, rune by rune as Go maps them.

use super::super::host::Ty;

use super::{Function, bytes, fixed, string};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("upper", &[Ty::Str], |_, args| {
        Ok(string(args, 0).chars().map(to_upper).collect::<String>().into())
    }),
    fixed("lower", &[Ty::Str], |_, args| {
        Ok(string(args, 0).chars().map(to_lower).collect::<String>().into())
    }),
    fixed("title", &[Ty::Str], |_, args| Ok(title(&string(args, 0)).into())),
    fixed("untitle", &[Ty::Str], |_, args| Ok(untitle(&string(args, 0)).into())),
    fixed("swapcase", &[Ty::Str], |_, args| Ok(swap(&string(args, 0)).into())),
    fixed("nospace", &[Ty::Str], |_, args| {
        // Go walks bytes here and reads each as a character.
        let text = bytes(args, 0);
        let kept: String = text.iter().map(|b| char::from(*b)).filter(|c| !c.is_whitespace()).collect();
        Ok(if kept.chars().count() == text.len() { args[0].clone() } else { kept.into() })
    }),
    fixed("initials", &[Ty::Str], |_, args| {
        let mut gap = true;
        let mut out = String::new();
        for c in bytes(args, 0).iter().map(|b| char::from(*b)) {
            if !c.is_whitespace() && gap {
                out.push(c);
            }
            gap = c.is_whitespace();
        }
        Ok(out.into())
    }),
    fixed("camelcase", &[Ty::Str], |_, args| Ok(pascal(&string(args, 0)).into())),
    fixed("snakecase", &[Ty::Str], |_, args| Ok(separated(&string(args, 0), '_').into())),
    fixed("kebabcase", &[Ty::Str], |_, args| Ok(separated(&string(args, 0), '-').into())),
];

/// Go's unicode.ToUpper: one character for one character.
fn to_upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Go's unicode.ToLower.
fn to_lower(c: char) -> char {
    match c {
        'İ' => 'i',
        _ => {
            let mut lower = c.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(one), None) => one,
                _ => c,
            }
        }
    }
}

/// Go's strings.Title: what follows anything but letters, digits and underscores is raised.
fn title(text: &str) -> String {
    let mut before = ' ';
    let raise = |c: char| {
        let start = if before.is_ascii() {
            !(before.is_ascii_alphanumeric() || before == '_')
        } else {
            !before.is_alphanumeric() && before.is_whitespace()
        };
        before = c;
        if start { to_upper(c) } else { c }
    };
    text.chars().map(raise).collect()
}

fn untitle(text: &str) -> String {
    let mut start = true;
    let lower = |c: char| {
        let was = start;
        start = c.is_whitespace();
        if was && !start { to_lower(c) } else { c }
    };
    text.chars().map(lower).collect()
}

fn swap(text: &str) -> String {
    let mut space = true;
    let change = |c: char| {
        if c.is_uppercase() {
            space = false;
            to_lower(c)
        } else if c.is_lowercase() {
            space = false;
            to_upper(c)
        } else {
            space = c.is_whitespace();
            c
        }
    };
    text.chars().map(change).collect()
}

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

fn pascal(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    let Some(mut current) = rest.by_ref().find(|c| {
        let connector = is_connector(*c);
        if connector {
            out.push(*c);
        }
        !connector
    }) else {
        return text.to_owned();
    };
    let mut first_upper = current.is_uppercase();
    current = to_upper(current);
    for c in rest {
        let before = current;
        current = c;
        if is_connector(current) && is_connector(before) {
            out.push(before);
            continue;
        }
        if is_connector(before) {
            first_upper = current.is_uppercase();
            current = to_upper(current);
        } else {
            if first_upper {
                if current.is_uppercase() {
                    current = to_lower(current);
                } else {
                    first_upper = false;
                }
            }
            out.push(before);
        }
    }
    out.push(current);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    None,
    Number,
    Upper,
    Letters,
    Connector,
    Punctuation,
    Other,
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation() && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~');
    }
    matches!(
        c,
        '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}' | '\u{2010}'..='\u{2027}'
    )
}

fn is_letter(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase()
}

/// The next word of a name, and what is left.
fn next_word(text: &str) -> (Word, &str, &str) {
    let Some(first) = text.chars().next() else { return (Word::None, "", "") };
    let run = |test: &dyn Fn(char) -> bool| text.find(|c| !test(c)).unwrap_or(text.len());
    let lower = |c: char| is_letter(c) && !c.is_uppercase();
    let (kind, length) = if is_connector(first) {
        (Word::Connector, run(&is_connector))
    } else if is_punctuation(first) {
        (Word::Punctuation, run(&is_punctuation))
    } else if first.is_uppercase() {
        let uppers = run(&|c| c.is_uppercase());
        let after = text[uppers..].chars().next();
        let length = if text[first.len_utf8()..].chars().next().is_some_and(char::is_uppercase) {
            // In "HTTPStatus" the last capital belongs to the next word.
            match after {
                Some(c) if is_letter(c) => {
                    uppers - text[..uppers].chars().next_back().map_or(0, char::len_utf8)
                }
                _ => uppers,
            }
        } else {
            uppers + text[uppers..].find(|c| !lower(c)).unwrap_or(text.len() - uppers)
        };
        (Word::Upper, length)
    } else if is_letter(first) {
        (Word::Letters, run(&lower))
    } else if first.is_numeric() {
        (Word::Number, run(&|c| c.is_numeric()))
    } else {
        let other = |c: char| !(is_connector(c) || is_letter(c) || c.is_numeric() || is_punctuation(c));
        (Word::Other, run(&other))
    };
    (kind, &text[..length], &text[length..])
}

fn write_word(out: &mut String, kind: Word, word: &str, connector: char) {
    match kind {
        Word::Upper | Word::Letters => out.extend(word.chars().map(to_lower)),
        Word::Connector => out.extend(word.chars().map(|_| connector)),
        Word::None | Word::Number | Word::Punctuation | Word::Other => out.push_str(word),
    }
}

fn separated(text: &str, connector: char) -> String {
    let mut out = String::new();
    let (mut kind, mut word, mut rest) = next_word(text);
    let joins = |kind: Word| !matches!(kind, Word::Connector | Word::Punctuation);
    while !rest.is_empty() {
        if kind != Word::Connector {
            write_word(&mut out, kind, word, connector);
        }
        let (before, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match before {
            Word::Number => {
                while matches!(kind, Word::Letters | Word::Number) {
                    write_word(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if kind != Word::None && joins(kind) {
                    out.push(connector);
                }
            }
            Word::Connector => write_word(&mut out, before, last, connector),
            Word::Punctuation => {}
            Word::None | Word::Upper | Word::Letters | Word::Other => {
                if kind != Word::Number {
                    if joins(kind) {
                        out.push(connector);
                    }
                } else if !rest.is_empty() {
                    let number = word;
                    (kind, word, rest) = next_word(rest);
                    if kind == Word::Letters {
                        out.push(connector);
                        write_word(&mut out, Word::Number, number, connector);
                        while matches!(kind, Word::Letters | Word::Number) {
                            write_word(&mut out, kind, word, connector);
                            (kind, word, rest) = next_word(rest);
                        }
                        if kind != Word::None && joins(kind) {
                            out.push(connector);
                        }
                    } else {
                        write_word(&mut out, Word::Number, number, connector);
                        if joins(kind) {
                            out.push(connector);
                        }
                    }
                }
            }
        }
    }
    write_word(&mut out, kind, word, connector);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_into_words() {
        for (text, want) in [
            ("FirstName", "first_name"),
            ("HTTPServer", "http_server"),
            ("NoHTTPS", "no_https"),
            ("GO PATH", "go_path"),
            ("http2xx", "http_2xx"),
            ("HTTP20xOK", "http_20x_ok"),
            ("Duration2m3s", "duration_2m3s"),
            ("Bld4Floor3rd", "bld4_floor_3rd"),
        ] {
            assert_eq!(separated(text, '_'), want);
        }
        assert_eq!(pascal("_complex__case_"), "_Complex_Case_");
        assert_eq!(pascal("GOLANG_IS_GREAT"), "GolangIsGreat");
    }
}
