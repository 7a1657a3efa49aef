//! The functions of strings: searching, cutting, replacing, joining, regular expressions and `format`.
//! Counts characters, as CEL does.

use super::format;
use super::runtime::Runtime;
use super::value::{Evaluated, Val, failed, no_overload};
use opdev_object::schema::Pattern;

/// Calls a function of strings; `None` where there is no such function for these arguments.
pub(super) fn call(runtime: &mut Runtime<'_>, name: &str, args: &[Val]) -> Option<Evaluated> {
    Some(match (name, args) {
        ("contains", [Val::Text(text), Val::Text(part)]) => match runtime.charge(product(text, part)) {
            Ok(()) => Ok(Val::Bool(text.contains(&**part))),
            Err(stop) => Err(stop),
        },
        ("startsWith", [Val::Text(text), Val::Text(part)]) => Ok(Val::Bool(text.starts_with(&**part))),
        ("endsWith", [Val::Text(text), Val::Text(part)]) => Ok(Val::Bool(text.ends_with(&**part))),
        ("matches", [Val::Text(text), Val::Text(pattern)]) => matches(runtime, text, pattern),
        ("find", [Val::Text(text), Val::Text(pattern)]) => find(runtime, text, pattern),
        ("findAll", [Val::Text(text), Val::Text(pattern)]) => find_all(runtime, text, pattern, -1),
        ("findAll", [Val::Text(text), Val::Text(pattern), Val::Int(most)]) => {
            find_all(runtime, text, pattern, *most)
        }
        ("charAt", [Val::Text(text), Val::Int(index)]) => char_at(text, *index),
        ("indexOf", [Val::Text(text), Val::Text(part)]) => {
            Ok(Val::Int(index_of(text, part, 0).unwrap_or(-1)))
        }
        ("indexOf", [Val::Text(text), Val::Text(part), Val::Int(from)]) => {
            from_offset(text, *from, |from| index_of(text, part, from))
        }
        ("lastIndexOf", [Val::Text(text), Val::Text(part)]) => {
            let length = text.chars().count();
            Ok(Val::Int(last_index_of(text, part, length).unwrap_or(-1)))
        }
        ("lastIndexOf", [Val::Text(text), Val::Text(part), Val::Int(from)]) => {
            from_offset(text, *from, |from| last_index_of(text, part, from))
        }
        ("lowerAscii", [Val::Text(text)]) => Ok(Val::text(text.to_ascii_lowercase())),
        ("upperAscii", [Val::Text(text)]) => Ok(Val::text(text.to_ascii_uppercase())),
        ("trim", [Val::Text(text)]) => Ok(Val::text(text.trim_matches(is_space))),
        ("replace", [Val::Text(text), Val::Text(old), Val::Text(new)]) => {
            replace(runtime, text, old, new, -1)
        }
        ("replace", [Val::Text(text), Val::Text(old), Val::Text(new), Val::Int(most)]) => {
            replace(runtime, text, old, new, *most)
        }
        ("split", [Val::Text(text), Val::Text(separator)]) => split(text, separator, -1),
        ("split", [Val::Text(text), Val::Text(separator), Val::Int(most)]) => split(text, separator, *most),
        ("substring", [Val::Text(text), Val::Int(start)]) => {
            let length = text.chars().count() as i64;
            if *start < 0 || *start > length {
                failed(format!("index out of range: {start}"))
            } else {
                substring(text, *start, length)
            }
        }
        ("substring", [Val::Text(text), Val::Int(start), Val::Int(end)]) => substring(text, *start, *end),
        ("join", [Val::List(items, _)]) => join(runtime, items, ""),
        ("join", [Val::List(items, _), Val::Text(separator)]) => join(runtime, items, separator),
        ("format", [Val::Text(text), Val::List(args, _)]) => format::format(runtime, text, args),
        ("jsonpatch.escapeKey", [Val::Text(text)]) => {
            Ok(Val::text(text.replace('~', "~0").replace('/', "~1")))
        }
        ("strings.quote", [Val::Text(text)]) => Ok(Val::text(quote(text))),
        _ => return None,
    })
}

fn product(text: &str, part: &str) -> u64 {
    (1 + text.len() as u64 / 10).saturating_mul(1 + part.len() as u64 / 10)
}

/// Unicode's white space.
fn is_space(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{85}' | '\u{a0}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}

/// Compiles a regular expression. The error is in Go's words as far as they are known.
fn compile(runtime: &mut Runtime<'_>, text: &str, pattern: &str) -> Result<Pattern, super::value::Stop> {
    runtime.charge(product(text, pattern))?;
    Ok(Pattern::new(pattern))
}

fn matches(runtime: &mut Runtime<'_>, text: &str, pattern: &str) -> Evaluated {
    match compile(runtime, text, pattern)?.is_match(text) {
        Ok(truth) => Ok(Val::Bool(truth)),
        Err(error) => failed(format!("error parsing regexp: {error}")),
    }
}

fn find(runtime: &mut Runtime<'_>, text: &str, pattern: &str) -> Evaluated {
    match compile(runtime, text, pattern)?.regex() {
        Ok(regex) => Ok(Val::text(regex.find(text).map_or("", |found| found.as_str()))),
        Err(error) => failed(format!("Illegal regex: error parsing regexp: {error}")),
    }
}

fn find_all(runtime: &mut Runtime<'_>, text: &str, pattern: &str, most: i64) -> Evaluated {
    match compile(runtime, text, pattern)?.regex() {
        Ok(regex) => {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            Ok(Val::list(regex.find_iter(text).take(most).map(|found| Val::text(found.as_str())).collect()))
        }
        Err(error) => failed(format!("Illegal regex: error parsing regexp: {error}")),
    }
}

fn char_at(text: &str, index: i64) -> Evaluated {
    let length = text.chars().count() as i64;
    if index == length {
        return Ok(Val::text(""));
    }
    match usize::try_from(index).ok().and_then(|index| text.chars().nth(index)) {
        Some(c) => Ok(Val::text(c.to_string())),
        None => failed(format!("index out of range: {index}")),
    }
}

fn byte_at(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
}

fn char_index(text: &str, byte: usize) -> i64 {
    text[..byte].chars().count() as i64
}

fn index_of(text: &str, part: &str, from: usize) -> Option<i64> {
    let start = byte_at(text, from);
    text[start..].find(part).map(|at| char_index(text, start + at))
}

/// The last place at or before `from`.
fn last_index_of(text: &str, part: &str, from: usize) -> Option<i64> {
    let end = byte_at(text, from.saturating_add(part.chars().count()).min(text.chars().count()));
    text[..end].rfind(part).map(|at| char_index(text, at))
}

fn from_offset(text: &str, from: i64, find: impl Fn(usize) -> Option<i64>) -> Evaluated {
    let length = text.chars().count() as i64;
    if from < 0 {
        return failed(format!("index out of range: {from}"));
    }
    if from >= length {
        return Ok(Val::Int(-1));
    }
    Ok(Val::Int(find(usize::try_from(from).unwrap_or_default()).unwrap_or(-1)))
}

fn replace(runtime: &mut Runtime<'_>, text: &str, old: &str, new: &str, most: i64) -> Evaluated {
    let places = if old.is_empty() { text.chars().count() + 1 } else { text.len() / old.len() + 1 };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let growth = (places.min(most) as u64).saturating_mul(new.len() as u64);
    runtime.charge((text.len() as u64 + growth) / 10)?;
    Ok(Val::text(text.replacen(old, new, most)))
}

fn split(text: &str, separator: &str, most: i64) -> Evaluated {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if most == 0 {
        return Ok(Val::list(Vec::new()));
    }
    if separator.is_empty() {
        let mut parts: Vec<Val> = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if parts.len() + 1 >= most {
                parts.push(Val::text(rest));
                break;
            }
            let (head, tail) = rest.split_at(c.len_utf8());
            parts.push(Val::text(head));
            rest = tail;
        }
        return Ok(Val::list(parts));
    }
    Ok(Val::list(text.splitn(most, separator).map(Val::text).collect()))
}

fn substring(text: &str, start: i64, end: i64) -> Evaluated {
    let length = text.chars().count() as i64;
    if start > end {
        return failed(format!("invalid substring range. start: {start}, end: {end}"));
    }
    if start < 0 || start > length {
        return failed(format!("index out of range: {start}"));
    }
    if end < 0 || end > length {
        return failed(format!("index out of range: {end}"));
    }
    let count = usize::try_from(end - start).unwrap_or_default();
    Ok(Val::text(text.chars().skip(start as usize).take(count).collect::<String>()))
}

fn join(runtime: &mut Runtime<'_>, items: &[Val], separator: &str) -> Evaluated {
    let mut out = String::new();
    for (i, item) in items.iter().enumerate() {
        let Val::Text(text) = item else { return no_overload() };
        runtime.charge((text.len() + separator.len()) as u64 / 10 + 1)?;
        if i > 0 {
            out.push_str(separator);
        }
        out.push_str(text);
    }
    Ok(Val::text(out))
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
