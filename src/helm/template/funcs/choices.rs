//! Defaults, choices and questions about types: `default`, `ternary`, `typeOf`, `kindIs` and their kin.

use super::super::host::Ty;
use super::super::value::{Kind, Value};
use super::{Function, empty, fixed, string, variadic};

const ANY: &[Ty] = &[Ty::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    variadic("default", ANY, Ty::Any, |_, args| {
        Ok(args.get(1).filter(|given| !empty(given)).unwrap_or(&args[0]).clone())
    }),
    fixed("empty", ANY, |_, args| Ok(Value::Bool(empty(&args[0])))),
    variadic("coalesce", &[], Ty::Any, |_, args| {
        Ok(args.iter().find(|v| !empty(v)).cloned().unwrap_or_default())
    }),
    variadic("all", &[], Ty::Any, |_, args| Ok(Value::Bool(!args.iter().any(empty)))),
    variadic("any", &[], Ty::Any, |_, args| Ok(Value::Bool(!args.iter().all(empty)))),
    fixed(
        "ternary",
        &[Ty::Any, Ty::Any, Ty::Bool],
        |_, args| Ok(args[usize::from(!args[2].truth())].clone()),
    ),
    fixed("typeOf", ANY, |_, args| Ok(args[0].type_name().into())),
    fixed("typeIs", &[Ty::Str, Ty::Any], |_, args| Ok(Value::Bool(args[1].type_name() == string(args, 0)))),
    fixed("typeIsLike", &[Ty::Str, Ty::Any], |_, args| {
        let name = args[1].type_name();
        let wanted = string(args, 0);
        Ok(Value::Bool(name == wanted || name.strip_prefix('*') == Some(&wanted)))
    }),
    fixed("kindOf", ANY, |_, args| Ok(args[0].kind().name().into())),
    fixed("kindIs", &[Ty::Str, Ty::Any], |_, args| Ok(Value::Bool(args[1].kind().name() == string(args, 0)))),
    fixed("deepEqual", &[Ty::Any, Ty::Any], |_, args| Ok(Value::Bool(args[0].deep_equal(&args[1])))),
];

/// Sprig's emptiness: as truth, but structs and pointers are never empty.
pub(super) fn is_empty(value: &Value) -> bool {
    match value.kind() {
        Kind::Struct | Kind::Ptr => false,
        _ => !value.truth(),
    }
}
