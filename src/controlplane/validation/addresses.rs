//! IP addresses and CIDR ranges in built-in kinds. Since 1.36 a real server is strict: it refuses leading
//! zeros, IPv4 addresses in IPv6 form, and bits beyond a range's prefix. An update may keep what was there.
//! Forms that it takes but does not like are warnings.

use opdev_apimachinery::error::Cause;
use opdev_apimachinery::version::since;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The number in decimal digits; leading zeros count for nothing.
fn number(digits: &str) -> Option<u32> {
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !all {
        return None;
    }
    let shown = digits.trim_start_matches('0');
    if shown.is_empty() { Some(0) } else { shown.parse().ok() }
}

fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = number(parts.next()?)?.try_into().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// An address as old servers took it: the parts of an IPv4 address may have leading zeros.
pub fn parse(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    ipv4(text).map(IpAddr::V4)
}

/// The IPv4 address that an IPv6 one stands for; other addresses as they are.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

fn is_mapped(address: IpAddr) -> bool {
    plain(address) != address
}

/// A range of addresses, with the address as it is written.
#[derive(Clone, Copy)]
pub(super) struct Range {
    address: IpAddr,
    prefix: u32,
}

impl Range {
    pub(super) fn parse(text: &str) -> Option<Range> {
        let (address, prefix) = text.split_once('/')?;
        let (address, prefix) = (parse(address)?, number(prefix)?);
        (prefix <= bits(address)).then_some(Range { address, prefix })
    }

    /// The first address of the range.
    fn first(self) -> IpAddr {
        masked(self.address, self.prefix)
    }

    pub(super) fn is_ipv6(self) -> bool {
        plain(self.address).is_ipv6()
    }

    /// Returns true if all of `other` is inside, and it is smaller.
    pub(super) fn is_larger_than(self, other: Range) -> bool {
        bits(self.address) == bits(other.address)
            && masked(other.address, self.prefix) == self.first()
            && self.prefix < other.prefix
    }

    fn shown(self) -> String {
        let first = self.first();
        let inside = if is_mapped(first) { self.prefix.saturating_sub(96) } else { self.prefix };
        format!("{}/{inside}", plain(first))
    }
}

fn bits(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, prefix: u32) -> IpAddr {
    match address {
        IpAddr::V4(four) => {
            let mask = u32::MAX.checked_shl(32 - prefix.min(32)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(four) & mask))
        }
        IpAddr::V6(six) => {
            let mask = u128::MAX.checked_shl(128 - prefix.min(128)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(six) & mask))
        }
    }
}

/// Why an address is refused.
fn wrong_ip(text: &str) -> Option<&'static str> {
    let Some(address) = parse(text) else {
        return Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    };
    if !since(36) {
        None
    } else if text.parse::<IpAddr>().is_err() {
        Some("must not have leading 0s")
    } else {
        is_mapped(address).then_some("must not be an IPv4-mapped IPv6 address")
    }
}

/// Returns true if the address or the prefix of a range has leading zeros.
fn has_zeros(range: &str) -> bool {
    let (address, prefix) = range.split_once('/').unwrap_or_default();
    address.parse::<IpAddr>().is_err() || (prefix.len() > 1 && prefix.starts_with('0'))
}

/// Returns true if a node or a pod cannot have all of these: one of IPv4 and one of IPv6 are the most. Each is
/// true for IPv6, and `None` where it cannot be read.
pub(super) fn are_too_many(families: &[Option<bool>]) -> bool {
    let both = families.contains(&Some(true)) && families.contains(&Some(false));
    families.len() > 2 || (families.len() == 2 && !both)
}

fn wrong_cidr(text: &str) -> Option<&'static str> {
    let Some(range) = Range::parse(text) else {
        return Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    };
    if !since(36) {
        return None;
    }
    if has_zeros(text) {
        Some("must not have leading 0s in IP or prefix length")
    } else if is_mapped(range.address) {
        Some("must not have an IPv4-mapped IPv6 address")
    } else {
        (range.first() != range.address).then_some("must not have bits set beyond the prefix length")
    }
}

fn refuse(field: &str, text: &str, detail: &str, causes: &mut Vec<Cause>) {
    causes.push(Cause::invalid(field, &Value::from(text), detail));
}

/// Checks an address, unless it is one of `kept`. Says whether it is right.
pub(super) fn ip(field: &str, text: &str, kept: &[&str], causes: &mut Vec<Cause>) -> bool {
    let wrong = if kept.contains(&text) { None } else { wrong_ip(text) };
    if let Some(detail) = wrong {
        refuse(field, text, detail, causes);
    }
    wrong.is_none()
}

/// Checks an address that has to be written in the shortest way, too.
pub(super) fn canonical_ip(field: &str, text: &str, causes: &mut Vec<Cause>) -> bool {
    if !ip(field, text, &[], causes) {
        return false;
    }
    let shown = parse(text).map(|address| plain(address).to_string()).unwrap_or_default();
    if shown != text {
        refuse(field, text, &format!("must be in canonical form ({shown:?})"), causes);
    }
    shown == text
}

/// Checks a range, unless it is one of `kept`.
pub(super) fn cidr(field: &str, text: &str, kept: &[&str], causes: &mut Vec<Cause>) {
    if let Some(detail) = wrong_cidr(text).filter(|_| !kept.contains(&text)) {
        refuse(field, text, detail, causes);
    }
}

/// Checks that an address is one where traffic may be sent to.
pub(super) fn endpoint(field: &str, text: &str, causes: &mut Vec<Cause>) {
    let Some(address) = parse(text).map(plain) else {
        refuse(field, text, "must be a valid IP address", causes);
        return;
    };
    let (local, local_multicast) = match address {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => (six.is_unicast_link_local(), six.segments()[0] & 0xff0f == 0xff02),
    };
    if address.is_unspecified() {
        refuse(field, text, &format!("may not be unspecified ({text})"), causes);
    }
    for (wrong, detail) in [
        (address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ] {
        if wrong {
            refuse(field, text, detail, causes);
        }
    }
}

/// The warning of an address that is taken, but not written as it should be.
pub fn ip_warning(field: &str, text: &str) -> Option<String> {
    let address = parse(text)?;
    if text.parse::<IpAddr>().is_err() || is_mapped(address) {
        let shown = plain(address);
        return Some(format!("{field}: non-standard IP address {text:?} is invalid: use \"{shown}\""));
    }
    (address.is_ipv6() && address.to_string() != text).then(|| {
        format!("{field}: IPv6 address {text:?} should be in RFC 5952 canonical format (\"{address}\")")
    })
}

/// The warnings of a range that is taken, but not written as it should be.
pub fn cidr_warnings(field: &str, text: &str) -> Vec<String> {
    let Some(range) = Range::parse(text) else { return Vec::new() };
    let mut warnings = Vec::new();
    let shown = range.shown();
    if range.first() != range.address {
        let single = format!("{}/{}", plain(range.address), bits(range.address));
        warnings.push(format!(
            "{field}: CIDR value {text:?} is ambiguous in this context (should be {shown:?} or {single:?}?)"
        ));
    }
    if has_zeros(text) || is_mapped(range.address) {
        warnings.push(format!("{field}: non-standard CIDR value {text:?} is invalid: use {shown:?}"));
    }
    let written = format!("{}/{}", range.address, range.prefix);
    if warnings.is_empty() && range.address.is_ipv6() && written != text {
        warnings.push(format!(
            "{field}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({written:?})"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_old_servers_read_them() {
        let cases = [
            ("1.2.3.4", Some("1.2.3.4")),
            ("001.2.3.04", Some("1.2.3.4")),
            ("1.2.3", None),
            ("1.2.3.4.5", None),
            ("1.2.3.256", None),
            ("1.2.3.+4", None),
            ("", None),
            ("fe80::0:1", Some("fe80::1")),
            ("fe80::1%eth0", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).map(|address| address.to_string()).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_range_that_was_there_may_stay_and_is_warned_of() {
        let mut causes = Vec::new();
        cidr("f", "1.2.3.4/8", &["1.2.3.4/8"], &mut causes);
        ip("f", "1.2.3.04", &["1.2.3.04"], &mut causes);
        assert_eq!(causes, []);
        let ambiguous = "f: CIDR value \"1.2.3.4/8\" is ambiguous in this context (should be \"1.0.0.0/8\" or \
                         \"1.2.3.4/32\"?)";
        assert_eq!(cidr_warnings("f", "1.2.3.4/8"), [ambiguous]);
        let mapped = "f: non-standard CIDR value \"::ffff:192.12.2.0/120\" is invalid: use \"192.12.2.0/24\"";
        assert_eq!(cidr_warnings("f", "::ffff:192.12.2.0/120"), [mapped]);
        let zeros = "f: non-standard IP address \"1.2.3.04\" is invalid: use \"1.2.3.4\"";
        assert_eq!(ip_warning("f", "1.2.3.04").as_deref(), Some(zeros));
        for fine in ["10.0.0.0/8", "fd00::/64", "0.0.0.0/0", "::/0"] {
            cidr("f", fine, &[], &mut causes);
            assert_eq!((causes.len(), cidr_warnings("f", fine)), (0, Vec::new()), "{fine}");
        }
    }
}
