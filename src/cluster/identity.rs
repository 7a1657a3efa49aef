//! Whom the operator calls as, where not as the user. Only data: `service_account` makes it.

use crate::client::forbidden::MissingRight;
use kube::Client;
use opdev_controlplane::User;
use tokio::sync::mpsc;

/// The operator's ServiceAccount, for whoever calls in its name.
#[derive(Clone)]
pub(crate) struct Identity {
    /// Calls as it. What is refused is noted.
    pub(crate) client: Client,
    /// Who it is on the embedded control plane.
    pub(crate) user: User,
    /// Where refusals go that the client does not see.
    pub(crate) refused: mpsc::Sender<MissingRight>,
}
