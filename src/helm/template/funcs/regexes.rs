//! Sprig's regex functions over Go's expressions. Compiled patterns are kept per thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use regex::bytes::Regex;

use super::super::budget::ITEM;
use super::super::error::FuncError;
use super::super::host::Ty;
use super::super::text::Str;
use super::super::value::{Elem, List, Value};
use super::{Call, Function, Outcome, bytes, fixed, int, string};
use opdev_object::go::pattern::{self, ErrorCode, PatternError};
use opdev_object::go::quote::decode;

const TWO: &[Ty] = &[Ty::Str, Ty::Str];
const THREE: &[Ty] = &[Ty::Str, Ty::Str, Ty::Str];
const COUNTED: &[Ty] = &[Ty::Str, Ty::Str, Ty::Int];

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("regexMatch", TWO, |_, args| {
        Ok(Value::Bool(compiled(args).is_ok_and(|regex| regex.is_match(bytes(args, 1)))))
    }),
    fixed("mustRegexMatch", TWO, |_, args| Ok(Value::Bool(compiled(args)?.is_match(bytes(args, 1))))),
    fixed("regexFind", TWO, |_, args| Ok(find(&must(args)?, args))),
    fixed("mustRegexFind", TWO, |_, args| Ok(find(&compiled(args)?, args))),
    fixed("regexFindAll", COUNTED, |call, args| find_all(call, &must(args)?, args)),
    fixed("mustRegexFindAll", COUNTED, |call, args| find_all(call, &compiled(args)?, args)),
    fixed("regexReplaceAll", THREE, |call, args| replace(call, &must(args)?, args)),
    fixed("mustRegexReplaceAll", THREE, |call, args| replace(call, &compiled(args)?, args)),
    fixed("regexReplaceAllLiteral", THREE, |call, args| replace_literal(call, &must(args)?, args)),
    fixed("mustRegexReplaceAllLiteral", THREE, |call, args| replace_literal(call, &compiled(args)?, args)),
    fixed("regexSplit", COUNTED, |call, args| split(call, &must(args)?, args)),
    fixed("mustRegexSplit", COUNTED, |call, args| split(call, &compiled(args)?, args)),
    fixed("regexQuoteMeta", &[Ty::Str], |_, args| Ok(pattern::quote_meta(bytes(args, 0)).into())),
];

type Compiled = Result<Rc<Regex>, PatternError>;

thread_local! {
    static PATTERNS: RefCell<HashMap<Str, Compiled>> = RefCell::default();
}

/// The pattern of a call, in Go's words when it is none.
fn compiled(args: &[Value]) -> Compiled {
    // The signature of each function has the pattern first.
    let empty = Str::from("");
    let text = args.first().and_then(Value::as_str).unwrap_or(&empty);
    PATTERNS.with_borrow_mut(|patterns| {
        if patterns.len() > 2000 {
            patterns.clear();
        }
        if let Some(found) = patterns.get(text) {
            return found.clone();
        }
        let made = match std::str::from_utf8(text) {
            Ok(pattern) => pattern::compile(pattern).map(Rc::new),
            Err(_) => Err(PatternError { code: ErrorCode::InvalidUtf8, expression: text.to_string() }),
        };
        patterns.insert(text.clone(), made.clone());
        made
    })
}

/// As `compiled`, with the words of Go's MustCompile.
fn must(args: &[Value]) -> Result<Rc<Regex>, FuncError> {
    compiled(args).map_err(|error| {
        let shown = string(args, 0);
        let quoted = if shown
            .contains(|c: char| c == '`' || c == '\u{7f}' || c == '\u{feff}' || (c < ' ' && c != '\t'))
        {
            opdev_object::go::quote::quote_bytes(shown.as_bytes())
        } else {
            format!("`{shown}`")
        };
        FuncError::new(format!("regexp: Compile({quoted}): {error}"))
    })
}

/// Go's limit: negative means all.
fn limit(args: &[Value]) -> usize {
    usize::try_from(int(args, 2)).unwrap_or(usize::MAX)
}

fn find(regex: &Rc<Regex>, args: &[Value]) -> Value {
    Value::str(regex.find(bytes(args, 1)).map_or(&b""[..], |m| m.as_bytes()))
}

/// Where a match begins and ends.
type Match = (usize, usize);

/// The matches Go counts, one after the other: an empty one right after another match does not count, and
/// after an empty match the search goes on behind the next character, not the next byte. Where each match is
/// short and is known only at the end of the text, they take a time that grows with the square of its length,
/// so that `call` is asked before each.
fn each_match(
    call: &mut Call<'_, '_>,
    text: &[u8],
    mut at: impl FnMut(usize) -> Option<Match>,
    mut take: impl FnMut(&mut Call<'_, '_>, Match) -> Result<bool, FuncError>,
) -> Result<(), FuncError> {
    let (mut from, mut end) = (0, None);
    while from <= text.len() {
        call.go_on()?;
        let Some((start, stop)) = at(from) else { break };
        if start == stop && splits_character(text, start) {
            // Only Rust's expressions look there.
            from = start + 1;
            continue;
        }
        let counts = stop > start || end != Some(start);
        if stop > from {
            from = stop;
        } else {
            from += decode(&text[from..]).1.max(1);
        }
        end = Some(stop);
        if counts && !take(call, (start, stop))? {
            break;
        }
    }
    Ok(())
}

/// Returns true if a place is inside a character.
fn splits_character(text: &[u8], at: usize) -> bool {
    let continues = text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    continues && (at.saturating_sub(3)..at).any(|start| start + decode(&text[start..]).1 > at)
}

/// Each match of a pattern, for a function that needs nothing but its text.
fn each_text(
    call: &mut Call<'_, '_>,
    regex: &Regex,
    text: &[u8],
    take: impl FnMut(&mut Call<'_, '_>, Match) -> Result<bool, FuncError>,
) -> Result<(), FuncError> {
    each_match(call, text, |from| regex.find_at(text, from).map(|m| (m.start(), m.end())), take)
}

fn find_all(call: &mut Call<'_, '_>, regex: &Rc<Regex>, args: &[Value]) -> Outcome {
    let (text, most) = (bytes(args, 1), limit(args));
    let (mut found, mut length) = (Vec::new(), 0);
    if most > 0 {
        each_text(call, regex, text, |call, (start, stop)| {
            length += stop - start + PART;
            call.makes(length)?;
            found.push(&text[start..stop]);
            Ok(found.len() < most)
        })?;
    }
    if found.is_empty() {
        return Ok(Value::List(List::nil(Elem::Str)));
    }
    Ok(Value::strings(found))
}

/// Bytes of a part beside its text, in the list of parts and in that of values.
const PART: usize = 2 * ITEM;

fn replace(call: &mut Call<'_, '_>, regex: &Rc<Regex>, args: &[Value]) -> Outcome {
    let (text, template) = (bytes(args, 1), Replacement::read(regex, bytes(args, 2)));
    let mut out = Vec::with_capacity(text.len());
    let mut copied = 0;
    let groups = std::cell::RefCell::new(regex.capture_locations());
    let at =
        |from| regex.captures_read_at(&mut groups.borrow_mut(), text, from).map(|m| (m.start(), m.end()));
    each_match(call, text, at, |call, (start, stop)| {
        let groups = groups.borrow();
        let length: usize = template.pieces(text, &groups).map(<[u8]>::len).sum();
        call.makes(out.len() + (start - copied) + length + (text.len() - stop))?;
        out.extend_from_slice(&text[copied..start]);
        template.pieces(text, &groups).for_each(|piece| out.extend_from_slice(piece));
        copied = stop;
        Ok(true)
    })?;
    out.extend_from_slice(&text[copied..]);
    Ok(out.into())
}

/// Go's template of a replacement: `$1`, `$name`, `${name}`, `$$`.
struct Replacement<'t>(Vec<Piece<'t>>);

enum Piece<'t> {
    Text(&'t [u8]),
    Group(usize),
}

impl<'t> Replacement<'t> {
    fn read(regex: &Regex, mut template: &'t [u8]) -> Replacement<'t> {
        let mut pieces = Vec::new();
        while let Some(at) = template.iter().position(|b| *b == b'$') {
            pieces.push(Piece::Text(&template[..at]));
            template = &template[at + 1..];
            if let Some(rest) = template.strip_prefix(b"$") {
                pieces.push(Piece::Text(b"$"));
                template = rest;
                continue;
            }
            let braced = template.first() == Some(&b'{');
            let body = &template[usize::from(braced)..];
            let length = name_length(body);
            let closed = !braced || body.get(length) == Some(&b'}');
            if length == 0 || !closed {
                pieces.push(Piece::Text(b"$"));
                continue;
            }
            let name = &body[..length];
            template = &body[length + usize::from(braced)..];
            let number = name.iter().all(u8::is_ascii_digit);
            let group = if number {
                std::str::from_utf8(name).ok().and_then(|name| name.parse().ok())
            } else {
                regex.capture_names().position(|known| known.is_some_and(|known| known.as_bytes() == name))
            };
            pieces.extend(group.map(Piece::Group));
        }
        pieces.push(Piece::Text(template));
        Replacement(pieces)
    }

    /// The replacement for one match.
    fn pieces(
        &self,
        text: &'t [u8],
        groups: &regex::bytes::CaptureLocations,
    ) -> impl Iterator<Item = &'t [u8]> {
        self.0.iter().map(move |piece| match piece {
            Piece::Text(piece) => *piece,
            Piece::Group(group) => groups.get(*group).map_or(&[][..], |(start, stop)| &text[start..stop]),
        })
    }
}

/// How many bytes of a text are letters, digits and underscores.
fn name_length(text: &[u8]) -> usize {
    let mut length = 0;
    while let (Some(c), width) = decode(&text[length..]) {
        if width == 0 || !super::super::lex::is_alphanumeric(c) {
            break;
        }
        length += width;
    }
    length
}

fn replace_literal(call: &mut Call<'_, '_>, regex: &Rc<Regex>, args: &[Value]) -> Outcome {
    let (text, with) = (bytes(args, 1), bytes(args, 2));
    let mut out = Vec::with_capacity(text.len());
    let mut copied = 0;
    each_text(call, regex, text, |call, (start, stop)| {
        call.makes(out.len() + (start - copied) + with.len() + (text.len() - stop))?;
        out.extend_from_slice(&text[copied..start]);
        out.extend_from_slice(with);
        copied = stop;
        Ok(true)
    })?;
    out.extend_from_slice(&text[copied..]);
    Ok(out.into())
}

fn split(call: &mut Call<'_, '_>, regex: &Rc<Regex>, args: &[Value]) -> Outcome {
    let text = bytes(args, 1);
    let most = limit(args);
    if most == 0 {
        return Ok(Value::List(List::nil(Elem::Str)));
    }
    if text.is_empty() && !bytes(args, 0).is_empty() {
        return Ok(Value::strings([""]));
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    let (mut begin, mut finish) = (0, 0);
    if most > 1 {
        each_text(call, regex, text, |call, (start, stop)| {
            call.makes(text.len() + PART * (parts.len() + 1))?;
            finish = start;
            if stop != 0 {
                parts.push(&text[begin..finish]);
            }
            begin = stop;
            Ok(parts.len() + 1 < most)
        })?;
    }
    if finish != text.len() {
        parts.push(&text[begin..]);
    }
    Ok(Value::strings(parts))
}
