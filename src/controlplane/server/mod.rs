//! Ways in: the front door that every request passes, the in-process service, and loopback sockets with TLS.
//! Never decides what a verb does; `handlers` does. Start with `front`.

mod attributes;
pub(crate) mod certificates;
pub(crate) mod client_certificates;
mod endpoint;
mod exec;
pub(crate) mod front;
mod health;
mod impersonation;
mod in_process;
mod kubeconfig;
mod listener;
mod metrics;
mod observed;
mod observer;
mod relay;
mod sec1;
mod spdy;
mod unauthenticated;
mod websocket;
mod x509;

pub use endpoint::{
    EndpointHandler, EndpointRequest, EndpointResponse, check_serving, self_signed, serve_endpoint,
};
pub use in_process::{InProcess, ObservedInProcess};
pub use listener::{Listen, Listening, Serving};
pub(crate) use listener::{listen, random_token};
pub use observed::Disconnected;
pub use observer::{
    Asked, Copied, Delivery, Exchange, Leaving, Observation, ObservedToken, Observer, Passage, Refusal,
    Reset, Treatment,
};
pub use relay::{Relay, RelayedAnswer, Upstream};
pub use x509::certificate_end;
