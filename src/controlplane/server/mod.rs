//! Ways in: the front door that every request passes, the in-process service, and loopback sockets with TLS.
//! Never decides what a verb does; `handlers` does. Start with `front`.

mod attributes;
pub(crate) mod certificates;
pub(crate) mod front;
mod guests;
mod health;
mod impersonation;
mod in_process;
mod kubeconfig;
mod listener;

pub use health::git_version;
pub use in_process::InProcess;
pub(crate) use listener::listen;
pub use listener::{Listen, Listening, Serving};
