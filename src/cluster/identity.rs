//! The identity of the operator's calls, where it is not the user's. Only data: `service_account` makes it.

use kube::Client;
use opdev_client::forbidden::MissingRight;
use opdev_controlplane::User;
use tokio::sync::mpsc;

/// The operator's ServiceAccount, for whoever calls in its name.
#[derive(Clone)]
pub struct Identity {
    /// Calls as it. What is refused is noted.
    pub client: Client,
    /// The user on the embedded control plane.
    pub user: User,
    /// Where refusals go that the client does not see.
    pub refused: mpsc::Sender<MissingRight>,
}
