//! The record of an object in the store's file: its own key, revision and text behind a checksum of all
//! three, so that a record can be known for what it is wherever it is found. Never touches a file.

use super::{Key, Stored};

/// How each record begins.
const MARK: [u8; 4] = *b"opd\x02";
/// Mark, checksum, revision, lengths of key and text.
const HEAD: usize = 24;

/// A record whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub key: &'a [u8],
    pub revision: u64,
    pub text: &'a [u8],
    pub sum: u32,
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}

/// The record that bytes begin with.
pub(super) fn read(bytes: &[u8]) -> Option<Record<'_>> {
    let rest = bytes.strip_prefix(&MARK)?;
    let sum = number(rest, 0)?;
    let revision = u64::from_le_bytes(rest.get(4..12)?.try_into().ok()?);
    let (key, text) = (number(rest, 12)? as usize, number(rest, 16)? as usize);
    let key_end = HEAD.checked_add(key)?;
    let end = key_end.checked_add(text)?;
    if checksum(bytes.get(8..end)?) != sum {
        return None;
    }
    Some(Record { key: bytes.get(HEAD..key_end)?, revision, text: bytes.get(key_end..end)?, sum })
}

/// How often each byte may be read in the search for records, on average. A file that somebody made up can
/// hold a mark at every fourth byte, each of which claims the rest of the file.
const READINGS: usize = 256;

/// The records in bytes that may hold anything, wherever they lie; all of them, where no marks were made up.
pub(super) fn find_all(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut left = bytes.len().saturating_mul(READINGS);
    let mark = |at: &usize| bytes[*at..].starts_with(&MARK);
    (0..bytes.len()).filter(mark).filter_map(move |at| {
        let rest = &bytes[at..];
        let claimed = (number(rest, 16)? as usize).saturating_add(number(rest, 20)? as usize);
        // A record that claims more than there is costs nothing.
        let cost = if claimed > rest.len() { 0 } else { claimed };
        left = left.checked_sub(cost)?;
        read(rest)
    })
}

/// Writes an object as a record.
pub(super) fn write(key: &[u8], object: &Stored, into: &mut Vec<u8>) {
    let text = object.json();
    into.clear();
    into.extend_from_slice(&MARK);
    into.extend_from_slice(&[0; 4]);
    into.extend_from_slice(&object.revision.to_le_bytes());
    for length in [key.len(), text.len()] {
        // A request's limit is far below that.
        into.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    }
    into.extend_from_slice(key);
    into.extend_from_slice(&text);
    let sum = checksum(&into[8..]);
    into[4..8].copy_from_slice(&sum.to_le_bytes());
}

/// The checksum that a record carries, whether it is right or not.
pub(super) fn sum_of(bytes: &[u8]) -> u32 {
    number(bytes, 4).unwrap_or(0)
}

/// Table, namespace and name with a zero byte between them.
pub(super) fn encode_key(table: &str, key: &Key) -> Vec<u8> {
    [table.as_bytes(), key.namespace.as_bytes(), key.name.as_bytes()].join(&0)
}

pub(super) fn decode_key(bytes: &[u8]) -> Option<(&str, Key)> {
    let mut parts = std::str::from_utf8(bytes).ok()?.splitn(3, '\0');
    let (table, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some((table, Key::new(namespace, name)))
}

/// Returns true if this can be the key of an object: three names, the last of which is not empty, without a
/// control character.
pub(super) fn is_key(bytes: &[u8]) -> bool {
    let plain = |name: &str| !name.contains(char::is_control);
    decode_key(bytes).is_some_and(|(table, key)| {
        plain(table) && plain(&key.namespace) && plain(&key.name) && !key.name.is_empty()
    })
}

/// A key as a person reads it, damaged or not.
pub(super) fn shown_key(bytes: &[u8]) -> String {
    let parts: Vec<String> =
        bytes.split(|byte| *byte == 0).map(|part| part.escape_ascii().to_string()).collect();
    match parts.as_slice() {
        [table, namespace, name] if namespace.is_empty() => format!("{table} {name}"),
        [table, namespace, name] => format!("{table} {namespace}/{name}"),
        other => other.join(" "),
    }
}

/// The record of format 1: a revision, a checksum of it and the text, and the text. Its key was in no
/// checksum.
pub(super) fn read_first_format<'a>(key: &'a [u8], bytes: &'a [u8]) -> Option<Record<'a>> {
    let (head, text) = bytes.split_at_checked(12)?;
    let mut sum = flate2::Crc::new();
    sum.update(&head[..8]);
    sum.update(text);
    if sum.sum().to_le_bytes() != head[8..] {
        return None;
    }
    Some(Record { key, revision: u64::from_le_bytes(head[..8].try_into().ok()?), text, sum: 0 })
}

/// A text that is kept beside the objects, behind a checksum of its name and itself.
pub(super) fn write_kept(name: &str, bytes: &[u8]) -> Vec<u8> {
    [&checksum(&[name.as_bytes(), bytes].join(&0)).to_le_bytes(), bytes].concat()
}

/// Reads back bytes that `write_kept` wrote; `None` for other bytes.
pub(super) fn read_kept<'a>(name: &str, written: &'a [u8]) -> Option<&'a [u8]> {
    let (sum, bytes) = written.split_at_checked(4)?;
    (checksum(&[name.as_bytes(), bytes].join(&0)).to_le_bytes() == sum).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn marks_that_were_made_up_do_not_make_a_search_endless() {
        // Each claims half a megabyte, in a megabyte of marks: a checksum of each would read eleven
        // gigabytes.
        let mut mark = [0; HEAD];
        mark[..4].copy_from_slice(&MARK);
        mark[20..24].copy_from_slice(&(1_u32 << 19).to_le_bytes());
        let mut bytes = Vec::new();
        write(b"as", &Stored::unsaved(json!({"kind": "A"})), &mut bytes);
        bytes.extend(mark.repeat((1 << 20) / HEAD));
        assert_eq!(find_all(&bytes).count(), 1);
    }

    #[test]
    fn a_flipped_bit_anywhere_in_a_record_is_noticed() {
        let object = Stored::unsaved(json!({"kind": "A", "metadata": {"name": "n", "namespace": "x"}}));
        let key = encode_key("as", object.key());
        let mut bytes = Vec::new();
        write(&key, &object, &mut bytes);
        let found = read(&bytes).unwrap();
        assert_eq!((found.key, found.text), (&key[..], &object.json()[..]));
        assert_eq!(find_all(&[b"opd\x02", bytes.as_slice(), b"opd"].concat()).count(), 1);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&damaged).is_none(), "bit {bit}");
        }
        let kept = write_kept("ca", b"key");
        assert_eq!(read_kept("ca", &kept), Some(&b"key"[..]));
        assert_eq!(read_kept("cb", &kept), None);
    }
}
