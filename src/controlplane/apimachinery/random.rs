//! Random bytes and the ids made of them. The system is asked for many at once: an id costs no system call.

use std::cell::RefCell;

/// Bytes that are asked for at once.
const POOL: usize = 512;

struct Pool {
    bytes: [u8; POOL],
    used: usize,
}

thread_local! {
    static RANDOM: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL], used: POOL }) };
}

/// Bytes nobody can predict. Zeros where the system has no randomness: names then collide and are tried
/// again.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    const { assert!(N <= POOL) };
    RANDOM.with_borrow_mut(|pool| {
        if pool.used + N > POOL {
            pool.bytes = [0; POOL];
            let _ = getrandom::fill(&mut pool.bytes);
            pool.used = 0;
        }
        let mut taken = [0; N];
        let from = &mut pool.bytes[pool.used..pool.used + N];
        taken.copy_from_slice(from);
        // Nobody but the caller can know the bytes that were given out.
        from.fill(0);
        pool.used += N;
        taken
    })
}

/// A random (version 4) UUID.
pub fn uuid() -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes: [u8; 16] = bytes();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0x0f)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_uuids_and_no_two_are_alike() {
        let ids: HashSet<String> = (0..1000).map(|_| uuid()).collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            let parts: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            assert!(id[14..].starts_with('4') && "89ab".contains(&id[19..20]), "{id}");
        }
    }
}
