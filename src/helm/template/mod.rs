//! Go's text/template with every Sprig and Helm function: parsed once, executed often, wrong where Go is wrong.
//! It reaches nothing but its `Environment`. Read `set` (use), `parse` and `exec` (language), `value` (data), `funcs`.

mod call;
mod context;
mod convert;
mod der;
mod duration;
mod error;
mod exec;
mod float;
mod funcs;
#[cfg(test)]
mod golden;
mod host;
#[cfg(test)]
mod hostile;
mod keys;
mod layout;
mod lex;
mod node;
mod number;
mod parse;
mod pattern;
mod print;
mod printf;
mod quote;
mod reads;
mod scope;
mod set;
mod text;
mod value;

pub use context::Mark;
pub use context::{Compat, Context, Environment};
pub use error::{ExecError, Frame, FuncError, ParseError};
pub use funcs::Function;
pub use funcs::names as function_names;
pub use host::{Host, Signature, Ty};
pub use reads::{Compared, Inputs, NodeId, Paths, ROOT, Read, ReadSet, Reads, Seen};
pub use set::{ParseCache, TemplateSet, without_no_value};
pub use text::Str;
pub(crate) use text::text_of;
pub use value::{Elem, Kind, List, Map, MapType, UintKind, Value};

/// Runs a render on a stack deep enough for templates that call themselves a thousand times.
///
/// # Errors
/// The thread could not be started.
pub fn on_deep_stack<T: Send>(render: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    const STACK: usize = 512 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("render".to_owned()).stack_size(STACK);
        let handle = thread.spawn_scoped(scope, render)?;
        match handle.join() {
            Ok(value) => Ok(value),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
