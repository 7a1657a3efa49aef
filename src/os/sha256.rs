//! SHA-256 in the words of indexes, locks and registries.

use sha2::{Digest as _, Sha256};

/// The hexadecimal digits, in lower case.
pub fn digits(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digits with `sha256:` before them.
pub fn named(bytes: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", digits(bytes))
}
