//! The size of a function's result, as far as it follows from the lengths of its arguments: charged before
//! the call. A function whose result grows on the way charges for that itself, with `Call::makes`.

use super::super::budget::{ENTRY, ITEM};
use super::super::value::Value;

/// Below this a result is charged once it is there.
const LITTLE: usize = 4096;

/// Bytes of one value of a parsed text, with the tree that the parser makes on the way.
const PARSED: usize = 200;

/// Bytes of one action of a parsed template, which is kept for the next call.
const ACTION: usize = 600;

/// Bytes that a call is about to make, and what it keeps of them for as long as the render lasts.
pub(crate) fn growth(name: &str, args: &[Value]) -> usize {
    let text: usize = args.iter().filter_map(Value::as_str).map(|text| text.len()).sum();
    let items = match name.strip_prefix("must").unwrap_or(name) {
        "append" | "Append" | "push" | "Push" | "prepend" | "Prepend" | "rest" | "Rest" | "initial"
        | "Initial" | "reverse" | "Reverse" | "compact" | "Compact" | "uniq" | "Uniq" | "without"
        | "Without" | "slice" | "Slice" | "concat" | "chunk" | "Chunk" | "sortAlpha" | "toStrings" => {
            args.iter().map(|arg| arg.as_list().map_or(0, |list| list.len())).sum::<usize>() * ITEM
        }
        "keys" | "values" | "omit" | "pick" => {
            args.iter().filter_map(Value::as_map).map(|map| map.peek_all().len()).sum::<usize>() * ENTRY
        }
        _ => 0,
    };
    if text + items < LITTLE {
        return 0;
    }
    items.saturating_add(text.saturating_mul(times(name)).saturating_add(parsed(name, args)))
}

/// How many times longer than its texts a result may be.
fn times(name: &str) -> usize {
    match name {
        "upper" | "lower" | "title" | "untitle" | "swapcase" | "camelcase" | "snakecase" | "kebabcase" => 3,
        "nospace" | "initials" | "regexQuoteMeta" | "b64enc" | "b32enc" | "encryptAES" | "urlParse" => 3,
        // One character takes four bytes while they are shuffled.
        "shuffle" => 5,
        _ => 1,
    }
}

/// The size of the values of a text that is parsed.
fn parsed(name: &str, args: &[Value]) -> usize {
    let text = args.first().and_then(Value::as_str).map_or(&[][..], |text| text.as_bytes());
    let count = |marks: &[u8]| text.iter().filter(|byte| marks.contains(byte)).count();
    match name {
        "fromJson" | "mustFromJson" | "fromJsonArray" => count(b",:[{").saturating_mul(PARSED),
        "fromYaml" | "fromYamlArray" | "fromToml" => count(b",:[{\n-?=").saturating_mul(PARSED),
        "tpl" => count(b"{").saturating_mul(ACTION / 2),
        _ => 0,
    }
}
