//! One scenario in a world of its own, until it is settled, and its report. Waits on what happens, never on time.
//! `world` is one API server with its operator, `sample` what is done with one sample, `kuttl` with a folder of steps.

pub(crate) mod found;
pub(crate) mod html;
pub(crate) mod inventory;
pub(crate) mod junit;
pub(crate) mod kuttl;
pub(crate) mod manifest;
pub(crate) mod report;
pub(crate) mod sample;
pub(crate) mod settled;
pub(crate) mod shared_cluster;
pub(crate) mod world;

pub use found::Gate;
pub use html::{EMBEDDED, html};
pub use junit::junit;
pub use kuttl::KuttlTest;
pub use report::{Case, Outcome, Report, Suite, annotations, text};
pub use sample::SampleFile;
pub use shared_cluster::Namespaces;
