//! A server's words about a value of a type that cannot be worked with: values without a schema are looked
//! into when they are there, not before.

use super::kind::{Bound, Kind};
use super::signatures::signatures;
use super::value::{Stop, Val};

/// The words for a call that no way to call fits.
const NO_OVERLOAD: &str = "no such overload";

/// A field, or a key, of what has none. A list says that it wants numbers.
pub(super) fn no_key<T>(of: &Val, key: &str) -> Result<T, Stop> {
    let why = match of {
        Val::List(..) => "unsupported index type 'string' in list".to_owned(),
        _ => format!("no such key: {key}"),
    };
    Err(Stop::Failed(why))
}

/// Going over what is no list and no map.
pub(super) fn no_range<T>(of: &Val) -> Result<T, Stop> {
    let name = match of {
        Val::Null => "Null",
        Val::Bool(_) => "Bool",
        Val::Int(_) => "Int",
        Val::Uint(_) => "Uint",
        Val::Double(_) => "Double",
        Val::Text(_) => "String",
        Val::Bytes(_) => "Bytes",
        Val::Duration(_) => "Duration",
        Val::Timestamp(_) => "Timestamp",
        _ => return Err(Stop::Failed(NO_OVERLOAD.to_owned())),
    };
    Err(Stop::Failed(format!("got 'types.{name}', expected iterable type")))
}

/// Returns true if values of a kind can stand on the left of an operator with two sides.
fn is_left_of(operator: &str, kind: &Kind) -> bool {
    use Kind::{Bool, Bytes, Double, Duration, Int, List, Text, Timestamp, Uint};
    match operator {
        "_+_" => matches!(kind, Bytes | Double | Duration | Int | List(_) | Text | Timestamp | Uint),
        "_-_" => matches!(kind, Double | Duration | Int | Timestamp | Uint),
        "_*_" | "_/_" => matches!(kind, Double | Int | Uint),
        "_%_" => matches!(kind, Int | Uint),
        "_<_" | "_<=_" | "_>_" | "_>=_" => {
            matches!(kind, Bool | Bytes | Double | Duration | Int | Text | Timestamp | Uint)
        }
        _ => true,
    }
}

/// The failure of a call, with what a server says instead where the arguments are of the wrong types.
pub(super) fn of_call(function: &str, args: &[Val], failure: Stop) -> Stop {
    let (Stop::Failed(why), Some(first)) = (&failure, args.first()) else { return failure };
    let unfit = why == NO_OVERLOAD;
    if unfit && !is_left_of(function, &first.kind()) {
        return Stop::Failed(format!("{NO_OVERLOAD}: {function}"));
    }
    if function.starts_with(['_', '@', '!', '-']) {
        return failure;
    }
    let kinds: Vec<Kind> = args.iter().map(Val::kind).collect();
    let fits = signatures(function).into_iter().flatten().any(|way| {
        let mut bound = Bound::default();
        let mut pairs = way.args.iter().zip(&kinds);
        way.args.len() == kinds.len() && pairs.all(|(wanted, given)| bound.fits(wanted, given))
    });
    if fits {
        return failure;
    }
    if function == "size" {
        return Stop::Failed(format!("{NO_OVERLOAD}: {function}"));
    }
    if matches!(function, "startsWith" | "endsWith" | "contains" | "matches") {
        return Stop::Failed(NO_OVERLOAD.to_owned());
    }
    let names: Vec<String> = args.iter().map(Val::type_name).collect();
    Stop::Failed(format!("{NO_OVERLOAD}: {function}({})", names.join(", ")))
}
