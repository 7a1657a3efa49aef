//! Sprig's lists. Nothing changes a list in place: each function gives a new one.

use super::super::error::FuncError;
use super::super::host::Ty;
use super::super::text::Str;
use super::super::value::{Elem, Kind, List, Value};
use super::strings::{strings_of, text_of};
use super::{Call, Function, Outcome, empty, fixed, int, numbers, variadic};

const LIST: &[Ty] = &[Ty::Any];
const TWO: &[Ty] = &[Ty::Any, Ty::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    variadic("list", &[], Ty::Any, |_, args| Ok(Value::list(args.to_vec()))),
    variadic("tuple", &[], Ty::Any, |_, args| Ok(Value::list(args.to_vec()))),
    fixed("append", TWO, push),
    fixed("mustAppend", TWO, push),
    fixed("push", TWO, push),
    fixed("mustPush", TWO, push),
    fixed("prepend", TWO, prepend),
    fixed("mustPrepend", TWO, prepend),
    fixed("first", LIST, |_, args| {
        Ok(items(args, 0, "find first on")?.items().first().cloned().unwrap_or_default())
    }),
    fixed("mustFirst", LIST, |_, args| {
        Ok(items(args, 0, "find first on")?.items().first().cloned().unwrap_or_default())
    }),
    fixed("last", LIST, |_, args| {
        Ok(items(args, 0, "find last on")?.items().last().cloned().unwrap_or_default())
    }),
    fixed("mustLast", LIST, |_, args| {
        Ok(items(args, 0, "find last on")?.items().last().cloned().unwrap_or_default())
    }),
    fixed("rest", LIST, rest),
    fixed("mustRest", LIST, rest),
    fixed("initial", LIST, initial),
    fixed("mustInitial", LIST, initial),
    fixed("reverse", LIST, reverse),
    fixed("mustReverse", LIST, reverse),
    fixed("compact", LIST, compact),
    fixed("mustCompact", LIST, compact),
    fixed("uniq", LIST, uniq),
    fixed("mustUniq", LIST, uniq),
    variadic("without", LIST, Ty::Any, without),
    variadic("mustWithout", LIST, Ty::Any, without),
    fixed("has", TWO, has),
    fixed("mustHas", TWO, has),
    variadic("slice", LIST, Ty::Any, slice),
    variadic("mustSlice", LIST, Ty::Any, slice),
    variadic("concat", &[], Ty::Any, concat),
    fixed("chunk", &[Ty::Int, Ty::Any], |_, args| chunk("chunk", args)),
    fixed("mustChunk", &[Ty::Int, Ty::Any], |_, args| chunk("chunk", args)),
    fixed("sortAlpha", LIST, |_, args| {
        if args[0].as_list().is_none() {
            return Ok(Value::strings([text_of(&args[0])]));
        }
        let mut texts: Vec<Str> = strings_of(&args[0]);
        texts.sort();
        Ok(Value::strings(texts))
    }),
];

const NIL: &str = "runtime error: invalid memory address or nil pointer dereference";

/// A list argument; the words say what could not be done to anything else.
fn items(args: &[Value], i: usize, cannot: &str) -> Result<List, FuncError> {
    args[i].as_list().ok_or_else(|| match args[i].kind() {
        Kind::Invalid => NIL.into(),
        kind => FuncError::new(format!("Cannot {cannot} type {}", kind.name())),
    })
}

fn push(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let mut list = items(args, 0, "push on")?.items().to_vec();
    list.push(args[1].clone());
    Ok(Value::list(list))
}

fn prepend(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let list = items(args, 0, "prepend on")?;
    Ok(Value::list(std::iter::once(&args[1]).chain(list.items()).cloned().collect()))
}

fn rest(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let list = items(args, 0, "find rest on")?;
    Ok(match list.items() {
        [] => Value::List(List::nil(Elem::Any)),
        [_, rest @ ..] => Value::list(rest.to_vec()),
    })
}

fn initial(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let list = items(args, 0, "find initial on")?;
    Ok(match list.items() {
        [] => Value::List(List::nil(Elem::Any)),
        [initial @ .., _] => Value::list(initial.to_vec()),
    })
}

fn reverse(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let list = items(args, 0, "find reverse on")?;
    Ok(Value::list(list.items().iter().rev().cloned().collect()))
}

fn compact(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let list = items(args, 0, "compact on")?;
    Ok(Value::list(list.items().iter().filter(|v| !empty(v)).cloned().collect()))
}

fn uniq(call: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let list = items(args, 0, "find uniq on")?;
    let mut kept: Vec<Value> = Vec::new();
    for item in list.items() {
        call.go_on()?;
        if !kept.iter().any(|k| k.deep_equal(item)) {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(kept))
}

fn without(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let list = items(args, 0, "find without on")?;
    let kept = list.items().iter().filter(|item| !args[1..].iter().any(|omit| omit.deep_equal(item)));
    Ok(Value::list(kept.cloned().collect()))
}

fn has(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    if args[1].is_nil() {
        return Ok(Value::Bool(false));
    }
    let list = items(args, 1, "find has on")?;
    Ok(Value::Bool(list.items().iter().any(|item| item.deep_equal(&args[0]))))
}

fn slice(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let Some(list) = args[0].as_list() else {
        return Err(match args[0].kind() {
            Kind::Invalid => NIL.into(),
            kind => FuncError::new(format!("list should be type of slice or array but {}", kind.name())),
        });
    };
    if list.items().is_empty() {
        return Ok(Value::Nil);
    }
    let start = args.get(1).map_or(0, numbers::to_int);
    let end =
        args.get(2).map_or(list.items().len(), |v| usize::try_from(numbers::to_int(v)).unwrap_or(usize::MAX));
    let part = usize::try_from(start).ok().and_then(|start| list.items().get(start..end));
    let part = part.ok_or("reflect.Value.Slice: slice index out of bounds")?;
    Ok(Value::List(List::typed(list.elem(), part.to_vec())))
}

fn concat(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let mut all = Vec::new();
    for arg in args {
        match (arg.as_list(), arg.kind()) {
            (Some(list), _) => all.extend_from_slice(list.items()),
            (None, Kind::Invalid) => return Err(NIL.into()),
            (None, kind) => {
                return Err(FuncError::new(format!("Cannot concat type {} as list", kind.name())));
            }
        }
    }
    Ok(Value::List(if all.is_empty() { List::nil(Elem::Any) } else { List::new(all) }))
}

/// Sprig counts the parts in floating point, so sizes below one give strange but fixed answers.
fn chunk(call: &str, args: &[Value]) -> Outcome {
    const RANGE: &str = "runtime error: makeslice: len out of range";
    let list = items(args, 1, call)?;
    let (items, size) = (list.items(), int(args, 0));
    if let Some(size) = usize::try_from(size).ok().filter(|n| *n > 0) {
        let chunks = items.chunks(size).map(|c| Value::list(c.to_vec())).collect();
        return Ok(Value::List(List::typed(Elem::Lists, chunks)));
    }
    let (length, size) = (items.len() as f64, size as f64);
    let count = ((length - 1.0) / size).floor() + 1.0;
    let own = length % size;
    let chunks = match count {
        0.0 => Vec::new(),
        1.0 if own > 0.0 => vec![Value::list(items.to_vec())],
        _ => return Err(RANGE.into()),
    };
    Ok(Value::List(List::typed(Elem::Lists, chunks)))
}
