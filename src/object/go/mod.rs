//! Go's ways with texts: what messages, templates and requests of Kubernetes look like because the programs
//! that made the rules are written in Go. Quoted text (`quote`), durations (`duration`), kinds of values
//! (`kind`), numbers (`number`), regular expressions (`pattern`).

pub mod duration;
pub mod kind;
pub mod number;
pub mod pattern;
mod printable;
pub mod quote;
