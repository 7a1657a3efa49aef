//! The cost of a function's call, asked before the call. A text costs as many steps as it is long, keys and
//! passwords cost by their number.

use super::super::value::Value;

/// Texts of versions are read in a time that grows with the square of their length.
const VERSION: u64 = 64;
/// Bytes of text for one step.
const BYTES: u64 = 64;
/// Bytes of text for one step, where every byte is tried against a pattern.
const SEARCHED: u64 = 4;

/// The cost of a call beside that of every call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Statements that take as long.
    pub(crate) steps: u64,
    /// RSA keys of 2048 bits that take as long, a tenth of a second each as a rule.
    pub(crate) keys: u64,
}

/// The cost of a call with these arguments.
pub(crate) fn cost(name: &str, args: &[Value]) -> Cost {
    let keys = match name {
        "genPrivateKey" => match args.first().and_then(Value::as_str).map(|kind| &**kind) {
            Some(b"ecdsa" | b"ed25519") => 1,
            // 4096 bits.
            _ => 6,
        },
        "genCA" | "genSelfSignedCert" | "genSignedCert" => 1,
        // A given key costs one read: nothing is made of it.
        "genCAWithKey" | "genSelfSignedCertWithKey" | "genSignedCertWithKey" => 1,
        "bcrypt" | "htpasswd" | "derivePassword" => 1,
        _ => 0,
    };
    Cost { steps: steps(name, args), keys }
}

/// The steps that a call with these arguments takes.
fn steps(name: &str, args: &[Value]) -> u64 {
    let texts = args.iter().filter_map(Value::as_str);
    let bytes: u64 = texts.map(|text| text.len() as u64).sum();
    let length = |list: Option<&Value>| match list {
        Some(Value::List(list)) => list.len() as u64,
        _ => 0,
    };
    let pairs = |a: Option<&Value>, b: Option<&Value>| length(a).saturating_mul(length(b));
    match name {
        "semver" | "semverCompare" => bytes / SEARCHED + (bytes / VERSION).saturating_mul(bytes / VERSION),
        // Every item is compared with every other one.
        "uniq" | "mustUniq" => pairs(args.first(), args.first()) / BYTES,
        "without" | "mustWithout" => args.len() as u64 * length(args.first()) / BYTES,
        // Below this no text is worth a division.
        _ if bytes < BYTES => 0,
        _ if name.starts_with("regex") || name.starts_with("mustRegex") => bytes / SEARCHED,
        _ => bytes / BYTES,
    }
}
