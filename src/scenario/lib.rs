//! One scenario in a world of its own, until it is settled, and its report. Waits on what happens, never on
//! time. `world` is one API server with its operator, `sample` what is done with one sample, `kuttl` with a
//! folder of steps.

pub mod found;
pub mod html;
pub(crate) mod inventory;
pub mod junit;
pub mod kuttl;
pub(crate) mod manifest;
pub mod report;
pub mod sample;
pub(crate) mod settled;
pub mod shared_cluster;
pub mod world;

pub use found::Gate;
pub use html::{EMBEDDED, html};
pub use junit::{content, junit};
pub use kuttl::KuttlTest;
pub use report::{Case, Outcome, Report, Suite, annotations, text};
pub use sample::SampleFile;
pub use shared_cluster::Namespaces;
