//! What the call of a function costs, in the steps that one render may take: most cost what their call counts for, keys and
//! passwords as much as a hundred thousand statements, and every text as much as it is long. Asked before the call.

use super::super::value::Value;

/// Steps for making an RSA key of 2048 bits, a tenth of a second as a rule.
const KEY: u64 = 250_000;
/// Steps for a key of 4096 bits.
const LARGE_KEY: u64 = 1_000_000;
/// Steps for a password that is made slowly on purpose.
const PASSWORD: u64 = 500_000;
/// Texts of versions are read in a time that grows with the square of their length.
const VERSION: u64 = 64;
/// Bytes of text for one step.
const BYTES: u64 = 64;
/// The same where every byte is tried against a pattern.
const SEARCHED: u64 = 4;

/// The steps that a call with these arguments takes beside those that every call does.
pub(in crate::template) fn cost(name: &str, args: &[Value]) -> u64 {
    let texts = args.iter().filter_map(Value::as_str);
    let bytes: u64 = texts.map(|text| text.len() as u64).sum();
    let length = |list: Option<&Value>| match list {
        Some(Value::List(list)) => list.items().len() as u64,
        _ => 0,
    };
    let pairs = |a: Option<&Value>, b: Option<&Value>| length(a).saturating_mul(length(b));
    match name {
        "genPrivateKey"
            if !matches!(
                args.first().and_then(Value::as_str).map(|kind| &**kind),
                Some(b"ecdsa" | b"ed25519")
            ) =>
        {
            LARGE_KEY
        }
        "genCA" | "genSelfSignedCert" | "genSignedCert" => KEY,
        // Of a given key nothing is made, but it is read and used.
        "genCAWithKey" | "genSelfSignedCertWithKey" | "genSignedCertWithKey" => KEY / 10,
        "bcrypt" | "htpasswd" | "derivePassword" => PASSWORD,
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
