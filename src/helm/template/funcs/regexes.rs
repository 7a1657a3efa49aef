//! Sprig's regex functions over Go's expressions. Compiled patterns are kept per thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use regex::bytes::Regex;

use super::super::error::FuncError;
use super::super::host::Ty;
use super::super::pattern::{self, ErrorCode, PatternError};
use super::super::text::Str;
use super::super::value::{Elem, List, Value};
use super::{Call, Function, Outcome, bytes, fixed, int, string};

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

/// A match: where it begins and ends, and its text.
type Match<'t> = (usize, usize, &'t [u8]);

/// The matches Go counts: an empty one right after another match does not. Where each one is short and is known only at the
/// end of the text, they take a time that grows with the square of its length, so that `call` is asked before each.
fn matches<'t>(call: &Call<'_, '_>, regex: &Regex, text: &'t [u8]) -> Result<Vec<Match<'t>>, FuncError> {
    let mut end = None;
    let mut found = Vec::new();
    for m in regex.find_iter(text) {
        call.go_on()?;
        if !(m.is_empty() && end == Some(m.start())) {
            found.push((m.start(), m.end(), m.as_bytes()));
        }
        end = Some(m.end());
    }
    Ok(found)
}

fn find_all(call: &mut Call<'_, '_>, regex: &Rc<Regex>, args: &[Value]) -> Outcome {
    let found: Vec<&[u8]> =
        matches(call, regex, bytes(args, 1))?.into_iter().map(|m| m.2).take(limit(args)).collect();
    if found.is_empty() {
        return Ok(Value::List(List::nil(Elem::Str)));
    }
    Ok(Value::strings(found))
}

fn replace(call: &mut Call<'_, '_>, regex: &Rc<Regex>, args: &[Value]) -> Outcome {
    let (text, template) = (bytes(args, 1), bytes(args, 2));
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    let mut end = None;
    for found in regex.captures_iter(text) {
        call.go_on()?;
        let Some(whole) = found.get(0) else { continue };
        if whole.is_empty() && end == Some(whole.start()) {
            continue;
        }
        end = Some(whole.end());
        out.extend_from_slice(&text[from..whole.start()]);
        expand(regex, &found, template, &mut out);
        from = whole.end();
    }
    out.extend_from_slice(&text[from..]);
    Ok(out.into())
}

/// Go's template of a replacement: `$1`, `$name`, `${name}`, `$$`.
fn expand(regex: &Regex, found: &regex::bytes::Captures<'_>, mut template: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = template.iter().position(|b| *b == b'$') {
        out.extend_from_slice(&template[..at]);
        template = &template[at + 1..];
        if template.first() == Some(&b'$') {
            out.push(b'$');
            template = &template[1..];
            continue;
        }
        let braced = template.first() == Some(&b'{');
        let body = &template[usize::from(braced)..];
        let text = String::from_utf8_lossy(body);
        let length = text.find(|c: char| !super::super::lex::is_alphanumeric(c)).unwrap_or(text.len());
        let closed = !braced || body.get(length) == Some(&b'}');
        if length == 0 || !closed {
            out.push(b'$');
            continue;
        }
        let name = &text[..length];
        template = &body[length + usize::from(braced)..];
        let number =
            name.bytes().all(|b| b.is_ascii_digit()).then(|| name.parse::<usize>().unwrap_or(usize::MAX));
        let group = match number {
            Some(n) => found.get(n),
            None => regex.capture_names().flatten().find(|n| *n == name).and_then(|n| found.name(n)),
        };
        if let Some(group) = group {
            out.extend_from_slice(group.as_bytes());
        }
    }
    out.extend_from_slice(template);
}

fn replace_literal(call: &mut Call<'_, '_>, regex: &Rc<Regex>, args: &[Value]) -> Outcome {
    let (text, with) = (bytes(args, 1), bytes(args, 2));
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for (start, end, _) in matches(call, regex, text)? {
        out.extend_from_slice(&text[from..start]);
        out.extend_from_slice(with);
        from = end;
    }
    out.extend_from_slice(&text[from..]);
    Ok(out.into())
}

fn split(call: &mut Call<'_, '_>, regex: &Rc<Regex>, args: &[Value]) -> Outcome {
    let text = bytes(args, 1);
    let most = limit(args);
    if most == 0 {
        return Ok(Value::List(List::nil(Elem::Str)));
    }
    if text.is_empty() && !regex.as_str().is_empty() {
        return Ok(Value::strings([""]));
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    let (mut begin, mut finish) = (0, 0);
    for (start, end, _) in matches(call, regex, text)? {
        if parts.len() + 1 >= most {
            break;
        }
        finish = start;
        if end != 0 {
            parts.push(&text[begin..finish]);
        }
        begin = end;
    }
    if finish != text.len() {
        parts.push(&text[begin..]);
    }
    Ok(Value::strings(parts))
}
