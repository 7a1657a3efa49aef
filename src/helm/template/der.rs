//! The little DER and PEM that keys and certificates need: writing values, and stepping through read ones.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigUint;

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const SEQUENCE: u8 = 0x30;

/// A value with its tag and length.
pub(super) fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if length < 0x80 {
        out.push(u8::try_from(length).unwrap_or(0));
    } else {
        let bytes: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|b| *b == 0).collect();
        out.push(0x80 | u8::try_from(bytes.len()).unwrap_or(0));
        out.extend(bytes);
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of values.
pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    value(SEQUENCE, &parts.concat())
}

/// A number that is not negative.
pub(super) fn integer(n: &BigUint) -> Vec<u8> {
    let mut bytes = n.to_bytes_be();
    if bytes[0] & 0x80 != 0 {
        bytes.insert(0, 0);
    }
    value(INTEGER, &bytes)
}

/// Whole bytes as a bit string.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    value(BIT_STRING, &[&[0], bytes].concat())
}

/// An object identifier, its content already encoded.
pub(super) fn oid(encoded: &[u8]) -> Vec<u8> {
    value(0x06, encoded)
}

/// Steps through values.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next value: tag, content, and the whole with its head.
    pub(super) fn next(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (tag, first) = (*self.0.first()?, *self.0.get(1)?);
        let (length, head) = if first < 0x80 {
            (usize::from(first), 2)
        } else {
            let count = usize::from(first & 0x7f);
            let bytes = self.0.get(2..2 + count).filter(|_| count <= 4)?;
            (bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b)), 2 + count)
        };
        let content = self.0.get(head..head.checked_add(length)?)?;
        let whole = &self.0[..head + length];
        self.0 = &self.0[head + length..];
        Some((tag, content, whole))
    }

    /// The next value's content, if it has that tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(t, ..)| *t == tag).map(|(_, content, _)| content)
    }
}

/// A PEM block.
pub(super) fn pem(kind: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {kind}-----\n");
    for line in body.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str(&format!("-----END {kind}-----\n"));
    out
}

/// The first PEM block of a text: its kind and content.
pub(super) fn read_pem(text: &str) -> Option<(String, Vec<u8>)> {
    let start = text.find("-----BEGIN ")? + 11;
    let kind_end = start + text[start..].find("-----")?;
    let kind = &text[start..kind_end];
    let body = &text[kind_end + 5..];
    let body = &body[..body.find(&format!("-----END {kind}-----"))?];
    let lines = body.lines().filter(|line| !line.contains(':'));
    let clean: String = lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect();
    Some((kind.to_owned(), STANDARD.decode(clean).ok()?))
}
