//! The Kubernetes version of this server, and the name by which it says so.

use opdev_object::facts::minors;
pub use opdev_object::facts::minors::since;

/// The second part of the Kubernetes version: `37` of 1.37.
pub fn minor() -> u32 {
    minors::number_of(minors::minor())
}

/// `v1.37.0+opdev-0.1.0`: a semantic version whose build part names this program.
pub fn git_version() -> String {
    format!("v{}.0+opdev-{}", minors::minor(), env!("CARGO_PKG_VERSION"))
}

/// The processor of this machine as Go names it.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
