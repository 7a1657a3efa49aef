//! Go's text/template with every Sprig and Helm function: parsed once, executed often, wrong where Go is
//! wrong. It reaches nothing but its `Environment`. Read `set` (use), `parse` and `exec` (language), `value`
//! (data), `funcs`.

mod budget;
mod call;
mod context;
mod convert;
mod der;
mod error;
mod exec;
mod float;
mod funcs;
mod go_error;
#[cfg(test)]
mod golden;
mod got;
mod host;
#[cfg(test)]
mod hostile;
mod keys;
mod kind;
mod layout;
mod lex;
mod node;
mod number;
mod parse;
mod print;
mod printf;
mod reads;
mod release;
mod scope;
pub mod semver;
mod set;
mod text;
mod value;
mod world;

pub use budget::Spent;
pub use context::Mark;
pub use context::{Compat, Context, Environment};
pub use error::{ExecError, Frame, FuncError, ParseError};
pub use funcs::Function;
pub use funcs::names as function_names;
pub use host::{Host, Signature, Ty};
pub use reads::{Compared, Inputs, NodeId, Paths, ROOT, Read, ReadPlace, ReadSet, Reads, Seen, differences};
pub use set::{ParseCache, ParsedText, TemplateSet, without_no_value};
pub use text::Str;
pub use text::{kept_text, text_of};
pub use value::{Elem, Kind, List, Map, MapType, UintKind, Value};
pub use world::{StableObjects, World};

/// How much stack there must be where a template's body begins. Between two bodies only what is limited
/// nests: 500 control structures and parentheses, 1000 levels of a value.
const ROOM: usize = if cfg!(debug_assertions) { 64 << 20 } else { 4 << 20 };
/// How much more is taken at once where there is less.
const MORE: usize = if cfg!(debug_assertions) { 256 << 20 } else { 64 << 20 };

/// Goes on with stack enough for a template's body. Templates call themselves thousands of times, deeper than
/// any thread's stack; so the stack grows where it has to, and a usual render stays on the thread it is asked
/// on.
pub fn on_deep_stack<T>(render: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ROOM, MORE, render)
}
