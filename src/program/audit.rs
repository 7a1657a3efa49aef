//! The audience of a program's calls, and the notices about its webhooks.

use opdev_event::Notice;
use opdev_facts::observed::ObservedCall;
use std::fmt;
use std::sync::Arc;

/// Sees each call of the programs once it is answered. Bodies are as they were sent: nothing of them may be
/// shown unmasked. It must not wait.
#[derive(Clone)]
pub struct Audit(pub Arc<dyn Fn(ObservedCall) + Send + Sync>);

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Audit")
    }
}

/// How the notice begins that the webhooks of a program are reached.
pub(crate) const REGISTERED: &str = "webhooks of the program are registered";
/// How the notice begins that they cannot be.
pub(crate) const NOT_REGISTERED: &str = "the webhooks of the program are not registered";

/// The part of a notice that is about the webhooks of a program: whether they are registered, or why not;
/// nothing where it is about something else.
pub fn webhooks_of(notice: &Notice) -> Option<Result<(), String>> {
    if notice.message.starts_with(REGISTERED) {
        return Some(Ok(()));
    }
    let why = notice.message.strip_prefix(NOT_REGISTERED)?;
    Some(Err(why.trim_start_matches(": ").to_owned()))
}
