//! Sprig's string functions. They count bytes where Go does, and fail where Go panics.

use super::super::budget::{ENTRY, ITEM};
use super::super::error::FuncError;
use super::super::host::Ty;
use super::super::print::sprint;
use super::super::printf::sprintf;
use super::super::text::Str;
use super::super::value::{Elem, Map, MapType, Value};
use super::{Call, Function, Outcome, bytes, fixed, int, string, variadic};
use opdev_object::go::quote::{decode, quote_bytes as quote};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("hello", &[], |_, _| Ok("Hello!".into())),
    fixed("trim", &[Ty::Str], |_, args| Ok(Value::str(trim_space(bytes(args, 0))))),
    fixed("trimall", &[Ty::Str, Ty::Str], trim_all),
    fixed("trimAll", &[Ty::Str, Ty::Str], trim_all),
    fixed("trimSuffix", &[Ty::Str, Ty::Str], |_, args| {
        Ok(bytes(args, 1).strip_suffix(bytes(args, 0)).map_or_else(|| args[1].clone(), Value::str))
    }),
    fixed("trimPrefix", &[Ty::Str, Ty::Str], |_, args| {
        Ok(bytes(args, 1).strip_prefix(bytes(args, 0)).map_or_else(|| args[1].clone(), Value::str))
    }),
    fixed("contains", &[Ty::Str, Ty::Str], |_, args| {
        Ok(Value::Bool(find(bytes(args, 1), bytes(args, 0)).is_some()))
    }),
    fixed("hasPrefix", &[Ty::Str, Ty::Str], |_, args| {
        Ok(Value::Bool(bytes(args, 1).starts_with(bytes(args, 0))))
    }),
    fixed("hasSuffix", &[Ty::Str, Ty::Str], |_, args| {
        Ok(Value::Bool(bytes(args, 1).ends_with(bytes(args, 0))))
    }),
    fixed("replace", &[Ty::Str, Ty::Str, Ty::Str], |call, args| {
        Ok(replace(call, bytes(args, 2), bytes(args, 0), bytes(args, 1))?.into())
    }),
    fixed("repeat", &[Ty::Int, Ty::Str], |call, args| {
        let Ok(count) = usize::try_from(int(args, 0)) else {
            return Err("strings: negative Repeat count".into());
        };
        if count.saturating_mul(bytes(args, 1).len()) > 1 << 28 {
            return Err("strings: Repeat output length overflow".into());
        }
        call.makes(count * bytes(args, 1).len())?;
        Ok(bytes(args, 1).repeat(count).into())
    }),
    variadic("quote", &[], Ty::Any, |_, args| Ok(each(args, |v| quote(&text_of(v)).into_bytes()).into())),
    variadic("squote", &[], Ty::Any, |_, args| {
        Ok(each(args, |v| [b"'", &sprint(v)[..], b"'"].concat()).into())
    }),
    variadic("cat", &[], Ty::Any, |call, args| {
        let parts: Vec<Value> = args.iter().filter(|v| !v.is_nil()).cloned().collect();
        let format = "%v ".repeat(parts.len());
        Ok(sprintf(format.trim_end().as_bytes(), &parts, &mut |bytes| call.makes(bytes))?.into())
    }),
    fixed("indent", &[Ty::Int, Ty::Str], |call, args| {
        Ok(indent(call, int(args, 0), bytes(args, 1), false)?.into())
    }),
    fixed("nindent", &[Ty::Int, Ty::Str], |call, args| {
        Ok(indent(call, int(args, 0), bytes(args, 1), true)?.into())
    }),
    fixed("trunc", &[Ty::Int, Ty::Str], |_, args| {
        let (count, text) = (int(args, 0), bytes(args, 1));
        let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
        if count < 0 && length + count > 0 {
            return Ok(Value::str(&text[index(length + count)..]));
        }
        if count >= 0 && length > count {
            return Ok(Value::str(&text[..index(count)]));
        }
        Ok(args[1].clone())
    }),
    fixed("substr", &[Ty::Int, Ty::Int, Ty::Str], substr),
    fixed("abbrev", &[Ty::Int, Ty::Str], |_, args| {
        let (width, text) = (int(args, 0), bytes(args, 1));
        if width < 4 {
            return Ok(args[1].clone());
        }
        Ok(abbreviate(text, 0, index(width)).into())
    }),
    fixed("abbrevboth", &[Ty::Int, Ty::Int, Ty::Str], |_, args| {
        let (left, right, text) = (int(args, 0), int(args, 1), bytes(args, 2));
        if right < 4 || (left > 0 && right < 7) {
            return Ok(args[2].clone());
        }
        Ok(abbreviate(text, index(left.max(0)), index(right)).into())
    }),
    fixed("plural", &[Ty::Str, Ty::Str, Ty::Int], |_, args| Ok(args[usize::from(int(args, 2) != 1)].clone())),
    fixed("toString", &[Ty::Any], |_, args| Ok(Value::Str(text_of(&args[0])))),
    fixed("toStrings", &[Ty::Any], |_, args| Ok(Value::strings(strings_of(&args[0])))),
    fixed("join", &[Ty::Str, Ty::Any], |call, args| {
        let parts = strings_of(&args[1]);
        let parts: Vec<&[u8]> = parts.iter().map(Str::as_bytes).collect();
        call.makes(parts.iter().map(|part| part.len() + bytes(args, 0).len()).sum())?;
        Ok(parts.join(bytes(args, 0)).into())
    }),
    fixed("splitList", &[Ty::Str, Ty::Str], |call, args| {
        Ok(Value::strings(split(call, bytes(args, 1), bytes(args, 0), -1)?))
    }),
    fixed("split", &[Ty::Str, Ty::Str], |call, args| {
        let parts = split(call, bytes(args, 1), bytes(args, 0), -1)?;
        numbered(call, parts)
    }),
    fixed("splitn", &[Ty::Str, Ty::Int, Ty::Str], |call, args| {
        let parts = split(call, bytes(args, 2), bytes(args, 0), int(args, 1))?;
        numbered(call, parts)
    }),
    fixed("wrap", &[Ty::Int, Ty::Str], |call, args| {
        Ok(wrap(call, bytes(args, 1), int(args, 0), b"\n", false)?.into())
    }),
    fixed("wrapWith", &[Ty::Int, Ty::Str, Ty::Str], |call, args| {
        let line = if bytes(args, 1).is_empty() { b"\n" } else { bytes(args, 1) };
        Ok(wrap(call, bytes(args, 2), int(args, 0), line, true)?.into())
    }),
];

fn index(n: i64) -> usize {
    usize::try_from(n).unwrap_or(0)
}

/// The text Sprig makes of any value.
pub(super) fn text_of(value: &Value) -> Str {
    match value {
        Value::Str(text) => text.clone(),
        Value::List(list) if list.elem() == Elem::Byte => list.to_bytes().into(),
        Value::Host(host) => host.text().unwrap_or_else(|| sprint(value).into()),
        other => sprint(other).into(),
    }
}

/// The strings Sprig makes of a list, or of one value.
pub(super) fn strings_of(value: &Value) -> Vec<Str> {
    match (value, value.as_list()) {
        (_, Some(list)) => list.items().iter().filter(|v| !v.is_nil()).map(text_of).collect(),
        (Value::Nil, _) => Vec::new(),
        (other, _) => vec![text_of(other)],
    }
}

fn each(args: &[Value], show: impl Fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let shown: Vec<Vec<u8>> = args.iter().filter(|v| !v.is_nil()).map(show).collect();
    shown.join(&b' ')
}

/// Where a text begins in another.
pub(in super::super) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

fn is_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ' | '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// Trims the characters for which the test is true at both ends.
fn trim_by(mut text: &[u8], cut: impl Fn(char) -> bool) -> &[u8] {
    loop {
        match decode(text) {
            (Some(c), width) if width > 0 && cut(c) => text = &text[width..],
            _ => break,
        }
    }
    'end: while !text.is_empty() {
        for width in 1..=text.len().min(4) {
            let start = text.len() - width;
            if let (Some(c), found) = decode(&text[start..]) {
                if found == width && cut(c) {
                    text = &text[..start];
                    continue 'end;
                }
                if found == width {
                    break 'end;
                }
            }
        }
        break;
    }
    text
}

/// Go's strings.TrimSpace.
pub(super) fn trim_space(text: &[u8]) -> &[u8] {
    trim_by(text, is_space)
}

fn trim_all(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let set = string(args, 0);
    Ok(Value::str(trim_by(bytes(args, 1), |c| set.contains(c))))
}

fn replace(call: &mut Call<'_, '_>, text: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>, FuncError> {
    let mut out = Vec::with_capacity(text.len());
    if old.is_empty() {
        let mut rest = text;
        loop {
            call.makes(out.len() + new.len() + rest.len())?;
            out.extend_from_slice(new);
            if rest.is_empty() {
                return Ok(out);
            }
            let width = decode(rest).1;
            out.extend_from_slice(&rest[..width]);
            rest = &rest[width..];
        }
    }
    let mut rest = text;
    while let Some(at) = find(rest, old) {
        call.makes(out.len() + new.len() + rest.len())?;
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

fn indent(call: &mut Call<'_, '_>, spaces: i64, text: &[u8], newline: bool) -> Result<Vec<u8>, FuncError> {
    let Ok(spaces) = usize::try_from(spaces) else { return Err("strings: negative Repeat count".into()) };
    if spaces > 1 << 16 {
        return Err("runtime error: makeslice: len out of range".into());
    }
    let lines = text.iter().filter(|b| **b == b'\n').count() + 1;
    call.makes(text.len() + 1 + lines.saturating_mul(spaces))?;
    let mut out = Vec::with_capacity(text.len() + lines * spaces + 1);
    if newline {
        out.push(b'\n');
    }
    for (i, line) in text.split(|b| *b == b'\n').enumerate() {
        if i > 0 {
            out.push(b'\n');
        }
        out.resize(out.len() + spaces, b' ');
        out.extend_from_slice(line);
    }
    Ok(out)
}

fn substr(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let (start, end, text) = (int(args, 0), int(args, 1), bytes(args, 2));
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let out_of =
        |shown: String| FuncError::new(format!("runtime error: slice bounds out of range [{shown}]"));
    let (from, to) = if start < 0 {
        if end < 0 || end > length {
            return Err(match end {
                ..0 => out_of(format!(":{end}")),
                _ => format!("runtime error: slice bounds out of range [:{end}] with length {length}").into(),
            });
        }
        (0, end)
    } else if end < 0 || end > length {
        if start > length {
            return Err(out_of(format!("{start}:{length}")));
        }
        (start, length)
    } else {
        if start > end {
            return Err(out_of(format!("{start}:{end}")));
        }
        (start, end)
    };
    Ok(Value::str(&text[index(from)..index(to)]))
}

fn abbreviate(text: &[u8], offset: usize, width: usize) -> Vec<u8> {
    let length = text.len();
    if text.is_empty() || length <= width || width < 4 {
        return if width < 4 { Vec::new() } else { text.to_vec() };
    }
    let kept = width - 3;
    let mut offset = offset.min(length);
    if length - offset < kept {
        offset = length - kept;
    }
    if offset <= 4 {
        return [&text[..kept], b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + kept < length {
        return [b"...", &abbreviate(&text[offset..], 0, kept)[..]].concat();
    }
    [b"...", &text[length - kept..]].concat()
}

/// Go's strings.SplitN; a negative count means all.
fn split(call: &mut Call<'_, '_>, text: &[u8], separator: &[u8], count: i64) -> Result<Vec<Str>, FuncError> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    if most == 0 {
        return Ok(parts);
    }
    let mut rest = text;
    if separator.is_empty() {
        while !rest.is_empty() && parts.len() + 1 < most {
            call.makes(text.len() + PART * parts.len())?;
            let width = decode(rest).1;
            parts.push(Str::from(&rest[..width]));
            rest = &rest[width..];
        }
        if !rest.is_empty() {
            parts.push(Str::from(rest));
        }
        return Ok(parts);
    }
    while parts.len() + 1 < most {
        let Some(at) = find(rest, separator) else { break };
        call.makes(text.len() + PART * parts.len())?;
        parts.push(Str::from(&rest[..at]));
        rest = &rest[at + separator.len()..];
    }
    parts.push(Str::from(rest));
    Ok(parts)
}

/// Bytes of a part beside its text, in the list of parts and in that of values.
const PART: usize = 2 * ITEM;

fn numbered(call: &mut Call<'_, '_>, parts: Vec<Str>) -> Outcome {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    call.makes(length + (PART + ENTRY) * parts.len())?;
    let entries = parts.into_iter().enumerate();
    let entries = entries.map(|(i, part)| (Str::from(format!("_{i}")), Value::Str(part))).collect();
    Ok(Value::Map(Map::typed(MapType::Strings, entries)))
}

fn wrap(
    call: &mut Call<'_, '_>,
    text: &[u8],
    width: i64,
    line: &[u8],
    long_words: bool,
) -> Result<Vec<u8>, FuncError> {
    let width = index(width.max(1));
    let mut out = Vec::with_capacity(text.len());
    let mut offset = 0;
    while offset < text.len() && text.len() - offset > width {
        if text[offset] == b' ' {
            offset += 1;
            continue;
        }
        call.makes(out.len() + line.len() + text.len() - offset)?;
        let space = text[offset..=offset + width].iter().rposition(|b| *b == b' ');
        let end = match space {
            Some(at) => offset + at,
            None if long_words => {
                out.extend_from_slice(&text[offset..offset + width]);
                out.extend_from_slice(line);
                offset += width;
                continue;
            }
            None => match text[offset + width..].iter().position(|b| *b == b' ') {
                Some(at) => offset + width + at,
                None => break,
            },
        };
        out.extend_from_slice(&text[offset..end]);
        out.extend_from_slice(line);
        offset = end + 1;
    }
    out.extend_from_slice(text.get(offset..).unwrap_or_default());
    Ok(out)
}
