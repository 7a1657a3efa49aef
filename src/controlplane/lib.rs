//! A Kubernetes API server and the few controllers a developer needs, in this process.
//! Never touches the terminal, nor files other than those of the folder it is told to keep its data in, and
//! knows nothing of the operator.
//!
//! ```
//! # #[cfg(feature = "kube")]
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, PostParams};
//!
//! let plane = opdev_controlplane::ControlPlane::start().await?;
//! let config_maps: Api<ConfigMap> = Api::default_namespaced(plane.client());
//!
//! let mut greeting = ConfigMap::default();
//! greeting.metadata.name = Some("greeting".into());
//! greeting.data = Some([("text".to_owned(), "hello".to_owned())].into());
//! config_maps.create(&PostParams::default(), &greeting).await?;
//!
//! let read = config_maps.get("greeting").await?;
//! assert_eq!(read.data.unwrap()["text"], "hello");
//! assert!(read.metadata.uid.is_some());
//!
//! // The same plane for whoever needs a kubeconfig: another client, kubectl, Helm, an operator under test.
//! let listening = plane.listen(opdev_controlplane::Listen::default()).await?;
//! let kubeconfig = kube::config::Kubeconfig::from_yaml(&listening.kubeconfig)?;
//! let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
//! let config_maps: Api<ConfigMap> = Api::default_namespaced(kube::Client::try_from(config)?);
//! assert!(config_maps.get_opt("greeting").await?.is_some());
//!
//! plane.stop().await;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "kube"))]
//! # fn main() {}
//! ```
//!
//! `Config` chooses controllers, roles and the clock; `Listen` brings certificates of one's own.
//! Read `server/front.rs` for the way of a request, `handlers` for the verbs, `storage` for the store.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may wait"))]

mod fidelity;
mod plane;
mod runner;
mod server;

pub use fidelity::{Gap, gaps};
pub use opdev_admission::{OutsideCall, Reach, Webhooks};
pub use opdev_apimachinery::body::Body;
pub use opdev_apimachinery::contract::exec::{ExecAnswer, NoExecAnswer};
pub use opdev_apimachinery::identity::User;
pub use opdev_apimachinery::resource;
pub use opdev_apimachinery::version::git_version;
pub use opdev_controllers::{self as controllers, Controllers};
pub use opdev_handlers as handlers;
pub use opdev_registry as registry;
pub use opdev_storage as storage;
pub use opdev_storage::{MovedAside, panics_are_caught};
pub use plane::{Config, ControlPlane, Error};
pub use server::{
    Asked, Copied, Delivery, Disconnected, EndpointHandler, EndpointRequest, EndpointResponse, Exchange,
    InProcess, Leaving, Listen, Listening, Observation, ObservedInProcess, ObservedToken, Observer, Passage,
    Refusal, Relay, RelayedAnswer, Reset, Serving, Treatment, Upstream, certificate_end, check_serving,
    self_signed, serve_endpoint,
};
