//! `opdev upgrade`: what installing the next version of an operator does to the objects that the version
//! before has made. Each variant has a control plane of its own: the old version makes its objects there, is
//! swapped for the new one, and all that happens then is judged. Prints nothing and draws nothing but through
//! the report that it returns. `checkout` reads a version from git, `end` loads it, `plane` is a control
//! plane that records writes, `running` an operator on it and when it is settled, `variant` the order of
//! events, `judge` the pure part: two states and the writes between them in, findings out.

mod applied;
mod calls;
mod checkout;
mod conversion;
mod definitions;
mod document;
mod end;
mod end_files;
mod finding;
mod generate;
mod html;
mod judge;
mod plane;
mod report;
mod running;
mod samples;
mod snapshot;
mod swap;
mod variant;

pub use checkout::{Git, Revision, cache_folder};
pub use definitions::{Difference, compared, compared_annotations, hurts, told as compared_text};
pub use document::{json, json_line, junit};
pub use end::{End, EndInput, Reader, WORKING_TREE};
pub use finding::{Class, Finding, Level};
pub use html::{Rehearsed, html};
pub use judge::Tally;
pub use report::{Progress, Report, Told, annotations, text};
pub use swap::{NoVariant, Variant};
pub use variant::{Input, rehearse};
