//! Charts from afar: chart repositories with an index, and OCI registries. Downloads, checks and decides;
//! never writes a file, never asks a cluster, and downloads nothing unless a command was asked to. `images`
//! downloads the base of an image, and uploads images. Files and words are Helm's: `homes` finds them,
//! `repositories` and `logins` read them. Begin with [`download`] for one chart and with [`Dependencies`] for
//! those that a chart lists; `inner_loop/requests/chart_dependencies` writes what the latter plan.

mod access;
mod chart;
mod dependencies;
mod homes;
mod images;
mod index;
mod listing;
mod lock;
mod logins;
mod origins;
mod pack;
mod reference;
mod registry;
mod registry_client;
mod repositories;
mod schema;
mod ways;
mod web;

pub use access::Access;
pub use chart::{ChartRequest, Downloaded, download, is_far};
pub use dependencies::{Dependencies, Plan};
pub use homes::Homes;
pub use images::{BaseImage, BaseLayer, ImageReference, Upload, download_image, push_image};
pub use listing::list;
pub use schema::download_schema;
