//! The Kubernetes version of this server, and the name by which it says so.

/// The Kubernetes minor whose schemas and texts this server has.
pub(crate) const MINOR: &str = "36";

/// `v1.36.0+opdev-0.1.0`: a semantic version whose build part names this program.
pub fn git_version() -> String {
    format!("v1.{MINOR}.0+opdev-{}", env!("CARGO_PKG_VERSION"))
}

/// The processor of this machine as Go names it.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
