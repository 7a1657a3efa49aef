//! Why `fetch` and `exec` of programs are refused, or have failed.

use opdev_event::words::took;
use opdev_script::contract::{HostError, HostErrorKind};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The hint where the project's files allow something that is not done.
const NOT_TRUSTED: &str = "opdev.yaml allows it, but you have not allowed this project to; press R to be asked again, or \
                           run `opdev trust` and save a file";

/// Why a `fetch` has no answer.
#[derive(Debug)]
pub(crate) enum FetchError {
    NoAddress {
        url: String,
        source: http::uri::InvalidUri,
    },
    /// The address is neither http nor https.
    Scheme {
        url: String,
    },
    NoHost {
        url: String,
    },
    /// The address holds a user or a password.
    Credentials,
    /// `opdev.yaml` does not allow the host.
    NotAllowed {
        host: String,
    },
    /// `opdev.yaml` allows the host, and the user has not allowed the project to reach it.
    NotTrusted {
        host: String,
    },
    /// The request was made and failed.
    Failed {
        host: String,
        source: Box<dyn Error + Send + Sync>,
    },
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fetch: ")?;
        match self {
            FetchError::NoAddress { url, source } => write!(f, "{url:?} is no address: {source}"),
            FetchError::Scheme { url } => write!(f, "{url:?} must begin with http:// or https://"),
            FetchError::NoHost { url } => write!(f, "{url:?} names no host"),
            FetchError::Credentials => {
                f.write_str("an address must not carry a user or a password; use a header")
            }
            FetchError::NotAllowed { host } => write!(
                f,
                "{host} is not allowed; add it to `allow.hosts` in opdev.yaml if the reconciler may reach it"
            ),
            FetchError::NotTrusted { host } => write!(f, "{host}: {NOT_TRUSTED}"),
            FetchError::Failed { host, source } => write!(f, "{host}: {source}"),
        }
    }
}

impl Error for FetchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            FetchError::NoAddress { source, .. } => Some(source),
            FetchError::Failed { source, .. } => Some(&**source),
            FetchError::Scheme { .. }
            | FetchError::NoHost { .. }
            | FetchError::Credentials
            | FetchError::NotAllowed { .. }
            | FetchError::NotTrusted { .. } => None,
        }
    }
}

impl From<FetchError> for HostError {
    fn from(error: FetchError) -> HostError {
        let kind = match &error {
            FetchError::NoAddress { .. }
            | FetchError::Scheme { .. }
            | FetchError::NoHost { .. }
            | FetchError::Credentials => HostErrorKind::Invalid,
            FetchError::NotAllowed { .. } | FetchError::NotTrusted { .. } => HostErrorKind::NotAllowed,
            FetchError::Failed { .. } => HostErrorKind::Failed,
        };
        HostError::new(kind, error)
    }
}

/// Why an `exec` has no result.
#[derive(Debug)]
pub(crate) enum ExecError {
    /// `opdev.yaml` does not allow the program.
    NotAllowed { program: String },
    /// `opdev.yaml` allows the program, and the user has not allowed the project to run it.
    NotTrusted { program: String },
    /// The program could not be run to its end.
    Failed { program: String, source: RunError },
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecError::NotAllowed { program } => write!(
                f,
                "exec: {program} is not allowed; add it to `allow.programs` in opdev.yaml if the reconciler may run it"
            ),
            ExecError::NotTrusted { program } => write!(f, "exec: {program}: {NOT_TRUSTED}"),
            ExecError::Failed { program, source } => write!(f, "exec: {program}: {source}"),
        }
    }
}

impl Error for ExecError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ExecError::Failed { source, .. } => Some(source),
            ExecError::NotAllowed { .. } | ExecError::NotTrusted { .. } => None,
        }
    }
}

impl From<ExecError> for HostError {
    fn from(error: ExecError) -> HostError {
        let kind = match &error {
            ExecError::NotAllowed { .. } | ExecError::NotTrusted { .. } => HostErrorKind::NotAllowed,
            ExecError::Failed { source: RunError::TimeIsOver { .. }, .. } => HostErrorKind::TimeIsOver,
            ExecError::Failed { .. } => HostErrorKind::Failed,
        };
        HostError::new(kind, error)
    }
}

/// Why a program could not be run to its end.
#[derive(Debug)]
pub(crate) enum RunError {
    /// It could not be started, or not be waited for.
    Io(std::io::Error),
    NoOutput,
    /// A process that it has started outlives it and keeps its output open.
    LeftBehind,
    /// It was ended: the reconcile has no time left.
    TimeIsOver {
        after: Duration,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Io(error) => error.fmt(f),
            RunError::NoOutput => f.write_str("its output cannot be read"),
            RunError::LeftBehind => f.write_str("a process that it has left behind keeps its output open"),
            RunError::TimeIsOver { after } => {
                write!(f, "ended after {}: the time of this reconcile is over", took(*after))
            }
        }
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            RunError::Io(error) => Some(error),
            RunError::NoOutput | RunError::LeftBehind | RunError::TimeIsOver { .. } => None,
        }
    }
}

impl From<std::io::Error> for RunError {
    fn from(error: std::io::Error) -> RunError {
        RunError::Io(error)
    }
}
