//! The trace of an operator: files that are added to the build of a Go program (`overlay`) or loaded by a
//! Python program (`python`), and the socket on which the program then tells what its controllers do
//! (`Listener`). Nothing is written into the project; without the environment variable `OPDEV_TRACE` the
//! added files do nothing.

pub mod overlay;
pub mod python;

pub use crate::listener::{ListenError, Listener, socket_path};
pub use overlay::{OverlayError, OverlayFile, Rung, overlay};

use std::path::Path;
use std::time::Duration;

/// The environment variable that names the socket.
pub const SOCKET: &str = "OPDEV_TRACE";
/// The environment variable with what is set in the options of every manager, as JSON.
pub const OPTIONS: &str = "OPDEV_MANAGER";
/// The variable with which client-go looks each second for cached objects that the program has changed, and
/// ends the program if it finds one.
pub const CACHE_MUTATION_DETECTOR: &str = "KUBE_CACHE_MUTATION_DETECTOR";
/// The name of the auth provider that the added files register with client-go. A kubeconfig whose user names
/// it (`auth-provider: {name: opdev}` beside the token) makes every client of the process put the id of its
/// reconcile on its calls, also clients that are made beside the manager. Only a binary with the added files
/// can read such a kubeconfig.
pub const AUTH_PROVIDER: &str = "opdev";

/// The options that are set in every manager of the process.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagerOptions {
    /// True if managers take part in leader election; `None` leaves it to the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_election: Option<bool>,
    /// Where metrics are served, such as `0` for nowhere; `None` leaves it to the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_bind_address: Option<String>,
    /// Where health probes are served, such as `0` for nowhere; `None` leaves it to the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_probe_bind_address: Option<String>,
    /// How long a manager waits for its runnables when it stops.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "milliseconds")]
    pub graceful_shutdown_timeout: Option<Duration>,
    /// Where webhooks are served, unless by a server of the program's own type; 0 is any free port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_port: Option<u16>,
    /// The folder with `tls.crt` and `tls.key` for webhooks, where the program's own has no certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_cert_dir: Option<String>,
    /// True if the process ends itself when opdev closes the socket, so that it is never left behind.
    pub exit_with_socket: bool,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        ManagerOptions {
            leader_election: Some(false),
            metrics_bind_address: Some("0".to_owned()),
            health_probe_bind_address: Some("0".to_owned()),
            graceful_shutdown_timeout: Some(Duration::from_secs(5)),
            webhook_port: None,
            webhook_cert_dir: None,
            exit_with_socket: true,
        }
    }
}

fn milliseconds<S: serde::Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    let whole = time.and_then(|time| u64::try_from(time.as_millis()).ok());
    serde::Serialize::serialize(&whole, to)
}

/// The variables that a traced process needs in its environment.
pub fn environment(socket: &Path, options: &ManagerOptions) -> Vec<(&'static str, String)> {
    let options = serde_json::to_string(options).unwrap_or_default();
    vec![(SOCKET, socket.display().to_string()), (OPTIONS, options)]
}
