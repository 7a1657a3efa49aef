//! Schemas of values that lie at an address.

use super::Access;
use super::web::Web;
use anyhow::{Context as _, Result};
use url::Url;

/// The JSON that a schema of a chart refers to. No login of `access` is sent.
///
/// # Errors
/// An address that is none, a host that cannot be reached, or an answer that is no success.
pub fn download_schema(url: &str, access: &Access) -> Result<Vec<u8>> {
    let address = Url::parse(url).with_context(|| format!("{url:?} is no address"))?;
    Web::new(&access.without_login())?.fetch(
        &address,
        &address,
        "application/schema+json, application/json, */*",
    )
}
