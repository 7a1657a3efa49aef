//! Base 64, base 32 and checksums.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::Digest as _;

use super::super::host::Ty;
use super::super::value::Value;
use super::{Function, bytes, fixed};

const TEXT: &[Ty] = &[Ty::Str];
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("b64enc", TEXT, |_, args| Ok(STANDARD.encode(bytes(args, 0)).into())),
    fixed("b64dec", TEXT, |_, args| {
        let text = bytes(args, 0);
        Ok(decode64(text)
            .map_or_else(|at| format!("illegal base64 data at input byte {at}").into(), Value::from))
    }),
    fixed("b32enc", TEXT, |_, args| Ok(encode32(bytes(args, 0)).into())),
    fixed("b32dec", TEXT, |_, args| {
        let text = bytes(args, 0);
        Ok(decode32(text)
            .map_or_else(|at| format!("illegal base32 data at input byte {at}").into(), Value::from))
    }),
    fixed("sha1sum", TEXT, |_, args| Ok(hex(&sha1::Sha1::digest(bytes(args, 0))).into())),
    fixed("sha256sum", TEXT, |_, args| Ok(hex(&sha2::Sha256::digest(bytes(args, 0))).into())),
    fixed("sha512sum", TEXT, |_, args| Ok(hex(&sha2::Sha512::digest(bytes(args, 0))).into())),
    fixed("adler32sum", TEXT, |_, args| {
        let (mut a, mut b) = (1u32, 0u32);
        for byte in bytes(args, 0) {
            a = (a + u32::from(*byte)) % 65521;
            b = (b + a) % 65521;
        }
        Ok(((b << 16) | a).to_string().into())
    }),
];

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Go's decoder: line ends are skipped; the error is the offset of what does not fit.
pub(super) fn decode64(text: &[u8]) -> Result<Vec<u8>, usize> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut input = text.iter().copied().enumerate().filter(|(_, b)| !matches!(b, b'\r' | b'\n'));
    loop {
        let mut group = [0u8; 4];
        let mut have = 0;
        while have < 4 {
            let Some((at, byte)) = input.next() else {
                return if have == 0 { Ok(out) } else { Err(text.len() - have) };
            };
            if let Some(n) = value(byte) {
                group[have] = n;
                have += 1;
                continue;
            }
            if byte != b'=' || have < 2 {
                return Err(at);
            }
            if have == 2 {
                match input.next() {
                    None => return Err(text.len()),
                    Some((_, b'=')) => {}
                    Some((at, _)) => return Err(at),
                }
            }
            if let Some((at, _)) = input.next() {
                return Err(at);
            }
            out.push(group[0] << 2 | group[1] >> 4);
            if have == 3 {
                out.push(group[1] << 4 | group[2] >> 2);
            }
            return Ok(out);
        }
        out.push(group[0] << 2 | group[1] >> 4);
        out.push(group[1] << 4 | group[2] >> 2);
        out.push(group[2] << 6 | group[3]);
    }
}

fn encode32(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let mut group = [0; 5];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = group.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        let letters = (chunk.len() * 8).div_ceil(5);
        for i in 0..8 {
            let letter = BASE32[usize::try_from(bits >> (35 - 5 * i) & 31).unwrap_or(0)];
            out.push(if i < letters { char::from(letter) } else { '=' });
        }
    }
    out
}

/// Go's decoder: line ends are skipped; the error is the offset that Go tells, which is the end where padding
/// is short.
fn decode32(text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<u8> = text.iter().copied().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    let mut out = Vec::new();
    for (n, chunk) in text.chunks(8).enumerate() {
        let start = n * 8;
        let mut bits = 0u64;
        let mut letters = 0;
        for (i, byte) in chunk.iter().enumerate() {
            let left = text.len() - start - i - 1;
            if *byte == b'=' && i >= 2 && left < 8 {
                if left + i < 7 {
                    return Err(text.len());
                }
                if let Some(wrong) = text[start + i + 1..].iter().take(7 - i).position(|b| *b != b'=') {
                    return Err(start + i + wrong);
                }
                if matches!(i, 3 | 6) {
                    return Err(start + i);
                }
                break;
            }
            let Some(value) = BASE32.iter().position(|b| b == byte) else { return Err(start + i) };
            bits = bits << 5 | value as u64;
            letters += 1;
        }
        if letters == chunk.len() && letters < 8 {
            return Err(start);
        }
        let length = letters * 5 / 8;
        let bytes = (bits << (64 - letters * 5)).to_be_bytes();
        out.extend_from_slice(&bytes[..length]);
        if letters < 8 {
            break;
        }
    }
    Ok(out)
}
