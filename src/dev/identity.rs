//! Whom the operator calls as, where not as the user. Only data: `service_account` makes it.

use crate::operator::missing_right::MissingRight;
use kube::Client;
use opdev_controlplane::User;
use tokio::sync::mpsc;

/// The operator's ServiceAccount, for whoever calls in its name.
#[derive(Clone)]
pub(super) struct Identity {
    /// Calls as it. What is refused is noted.
    pub(super) client: Client,
    /// Who it is on the embedded control plane.
    pub(super) user: User,
    /// Where refusals go that the client does not see.
    pub(super) refused: mpsc::Sender<MissingRight>,
}
