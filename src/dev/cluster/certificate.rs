//! When a client certificate ends: read from its DER, for the words of a refusal. Checks no signature.

use super::kubeconfig::Target;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

/// What is to say about a refused client certificate: that it has expired, or until when it would be valid.
pub(super) fn words(target: &Target) -> String {
    let Some(end) = pem(target).and_then(|pem| not_after(&pem)) else {
        return "the client certificate is not accepted".to_owned();
    };
    let day = end.strftime("%Y-%m-%d %H:%M UTC");
    if end < Timestamp::now() {
        format!("the client certificate expired on {day}")
    } else {
        format!("the client certificate, valid until {day}, is not accepted")
    }
}

fn pem(target: &Target) -> Option<String> {
    let user = &target.user;
    let bytes = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => STANDARD.decode(data).ok()?,
        (None, Some(path)) => std::fs::read(path).ok()?,
        (None, None) => return None,
    };
    String::from_utf8(bytes).ok()
}

/// The end of the first certificate of a PEM text.
fn not_after(pem: &str) -> Option<Timestamp> {
    let body = pem.split_once("-----BEGIN CERTIFICATE-----")?.1.split_once("-----END CERTIFICATE-----")?.0;
    let der = STANDARD.decode(body.split_whitespace().collect::<String>()).ok()?;
    let (_, certificate, _) = element(&der)?;
    let (_, signed, _) = element(certificate)?;
    let mut rest = signed;
    if rest.first() == Some(&0xa0) {
        rest = element(rest)?.2;
    }
    // Serial number, algorithm, issuer; then the validity.
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, end) = element(validity)?;
    let (tag, text, _) = element(end)?;
    time(tag, std::str::from_utf8(text).ok()?)
}

/// `UTCTime` (`YYMMDDHHMMSSZ`) or `GeneralizedTime` (`YYYYMMDDHHMMSSZ`).
fn time(tag: u8, text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix('Z')?;
    if !digits.is_ascii() {
        return None;
    }
    let full = match tag {
        0x17 if digits.len() == 12 => {
            format!("{}{digits}", if digits[..2].parse::<u8>().ok()? < 50 { "20" } else { "19" })
        }
        0x18 if digits.len() == 14 => digits.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| &full[from..to];
    format!("{}-{}-{}T{}:{}:{}Z", part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 12), part(12, 14))
        .parse()
        .ok()
}

/// Splits the first DER element off: its tag, what it holds and what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(count)?;
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    let (inside, rest) = rest.split_at_checked(length)?;
    Some((tag, inside, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_controlplane::{ControlPlane, Listen};

    #[tokio::test]
    async fn the_end_of_a_certificate_is_read() {
        let plane = ControlPlane::start().await.unwrap();
        let text = plane.listen(Listen::default()).await.unwrap().kubeconfig;
        let data =
            text.lines().find_map(|line| line.trim().strip_prefix("client-certificate-data: ")).unwrap();
        let pem = String::from_utf8(STANDARD.decode(data).unwrap()).unwrap();
        let end = not_after(&pem).unwrap().to_string();
        assert!(end.ends_with("-01-01T00:00:00Z"), "{end}");
        assert!(not_after(&pem).unwrap() > Timestamp::now());
        plane.stop().await;
        assert_eq!(not_after("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"), None);
        assert_eq!(time(0x17, "260101000000Z").unwrap().to_string(), "2026-01-01T00:00:00Z");
    }
}
