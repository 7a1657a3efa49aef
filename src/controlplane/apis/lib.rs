//! The built-in kinds, one object at a time: reading a body as their Go types would, defaults,
//! limits, the standards of pods, and the columns of Tables. Pure: never looks at another object,
//! never knows who asks. The registry says which kind has which of these.

pub mod decode;
mod decode_error;
pub mod defaults;
mod gotype;
pub mod limits;
pub mod pod_security;
pub mod table;
mod time;

pub use decode_error::{DecodeError, GoField};
pub use time::TimeError;
