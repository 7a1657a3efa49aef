//! Decides whether the plane may call a host that is not this machine. Webhooks, conversion webhooks and the
//! services that they name come from whoever may write objects, also from charts that nobody has read. Only
//! decides;
//! `resolver` asks before each call.

use super::resolver::{CallFailure, Endpoint, Resolved, is_local};
use std::fmt;
use std::sync::Arc;

/// A call to another machine that an object of the plane asks for.
#[derive(Clone, Debug)]
pub struct OutsideCall<'a> {
    /// The host that would be connected to, without a port.
    pub host: &'a str,
    /// The address as it is configured, without a query.
    pub url: &'a str,
    /// Everything that leads there was written by kubectl, and by nobody else.
    pub by_kubectl: bool,
}

/// Decides about calls to other machines: nothing, or why it is not called.
#[derive(Clone)]
pub struct Reach(Arc<Decide>);

type Decide = dyn Fn(&OutsideCall<'_>) -> Result<(), String> + Send + Sync;

impl Reach {
    /// A reach that asks a function, on the thread of the request.
    pub fn new(decide: impl Fn(&OutsideCall<'_>) -> Result<(), String> + Send + Sync + 'static) -> Reach {
        Reach(Arc::new(decide))
    }

    /// This machine only.
    pub fn nowhere() -> Reach {
        Reach::new(|call| Err(format!("the host {} is not called from here", call.host)))
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").finish_non_exhaustive()
    }
}

impl PartialEq for Reach {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Reach {}

/// The place, unless it is on another machine that may not be called.
pub(super) fn permitted(reach: Option<&Reach>, place: Endpoint, by_kubectl: bool) -> Resolved {
    let Some(Reach(decide)) = reach else { return Ok(place) };
    let host = place.dial.rsplit_once(':').map_or(place.dial.as_str(), |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if is_local(host) {
        return Ok(place);
    }
    let call = OutsideCall { host, url: &place.url, by_kubectl: by_kubectl && place.by_kubectl };
    match decide(&call) {
        Ok(()) => Ok(place),
        Err(why) => Err((place.url.clone(), CallFailure::Failed(why))),
    }
}
