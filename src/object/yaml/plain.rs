//! JSON as clients send it. YAML reads it too, to the same value, with ten times the work.

use serde_json::Value;

/// A key may be 1024 characters long, with its quotes.
const LONGEST_KEY: usize = 1000;
/// No number of so many digits leaves an `i64`.
const LONGEST_NUMBER: usize = 18;

/// The value of a text that is JSON; `None` where it is not, or where YAML may read it in another way.
pub(super) fn read(text: &str) -> Option<Value> {
    if means_the_same(text) { serde_json::from_str(text).ok() } else { None }
}

/// Returns true if YAML gives a text the same meaning as JSON does, should it be JSON.
pub(super) fn means_the_same(text: &str) -> bool {
    text.starts_with('{') && is_plain(text.as_bytes())
}

fn is_plain(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += match byte {
            b'"' => {
                let Some(length) = string(&text[at + 1..]) else { return false };
                // A colon anywhere else may be too far away from its key.
                let key = text.get(at + length + 2) == Some(&b':');
                if key && length > LONGEST_KEY {
                    return false;
                }
                length + 2 + usize::from(key)
            }
            b'-' | b'0'..=b'9' => match integer(&text[at..]) {
                Some(length) => length,
                None => return false,
            },
            b'{' | b'}' | b'[' | b']' | b',' | b' ' | b'\n' | b'a'..=b'z' => 1,
            _ => return false,
        };
    }
    true
}

/// The length of a string up to its closing quote; `None` where YAML may not take it or fold it.
fn string(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += match text.get(at)? {
            b'"' => return Some(at),
            b'\\' => match text.get(at + 1)? {
                b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                // Not half a character.
                b'u' if text.get(at + 2) == Some(&b'0') => 3,
                _ => return None,
            },
            b' '..=b'~' => 1,
            _ => return None,
        };
    }
}

/// The length of an integer; `None` for other numbers, which YAML may take for whole ones.
fn integer(text: &[u8]) -> Option<usize> {
    let part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let length = text.iter().take_while(|byte| part(byte)).count();
    let digits = text[..length].strip_prefix(b"-").unwrap_or(&text[..length]);
    let whole = digits.iter().all(u8::is_ascii_digit) && digits.len() <= LONGEST_NUMBER;
    (whole && (!digits.starts_with(b"0") || text[..length] == *b"0")).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::super::{compose, to_json};
    use super::*;
    use crate::random::Random;

    /// Text that may be put where it does not belong.
    const ODD: &str = "{|}|[|]|,|:|\"a\" :|\"x\"\n:|\"é\":|\"y\":\n|\"\\/\"|\"\\ud83d\\ude00\"|\"\u{7f}\"|\"\u{2028}\"|-0|1.0|1e3|017\
        |1_0|1234567890123456789|99999999999999999999|yes|~|\t|\r\n|#|- |\"";
    const KEYS: [&str; 6] = ["a", "b", "", "<<", "y", "k8s.io/x-1\\u0041"];
    const SCALARS: [&str; 9] = ["0", "7", "-12", "123456789012345678", "1.5", "1e3", "true", "false", "null"];
    const TEXTS: [&str; 14] =
        ["a", " ", "\\n", "\\\"", "\\u003c", ": ", " #", "no", "1", "é", "{", "- ", "\\\\", "'"];
    const BLANKS: [&str; 4] = [" ", "", "", "\n  "];

    fn value(random: &mut Random, depth: usize) -> String {
        let parts = |random: &mut Random, keys: bool| {
            let count = random.below(5);
            let part = |random: &mut Random| {
                let key = if keys {
                    format!("\"{}\":{}", random.of(&KEYS), random.of(&BLANKS))
                } else {
                    String::new()
                };
                format!("{}{key}{}{}", random.of(&BLANKS), value(random, depth + 1), random.of(&BLANKS))
            };
            (0..count).map(|_| part(random)).collect::<Vec<_>>().join(",")
        };
        match if depth == 0 { 4 } else { random.below(if depth > 3 { 3 } else { 5 }) } {
            0 => random.of(&SCALARS).to_owned(),
            1 | 2 => format!("\"{}{}{}\"", random.of(&TEXTS), random.of(&TEXTS), random.of(&TEXTS)),
            3 => format!("[{}]", parts(random, false)),
            _ => format!("{{{}}}", parts(random, true)),
        }
    }

    /// JSON that is read here has the value that the parser gives it.
    #[test]
    fn json_means_what_it_means_as_yaml() {
        let (mut random, mut read_here) = (Random(88_172_645_463_325_252), 0);
        let odd: Vec<&str> = ODD.split('|').collect();
        for _ in 0..60_000 {
            let mut text = value(&mut random, 0);
            // Some texts stay as they are, others get a part too many or lose some.
            let at = random.below(text.len());
            match random.below(4) {
                0 if text.is_char_boundary(at) => text.insert_str(at, random.of(&odd)),
                1 if text.is_char_boundary(at) => text.truncate(at),
                _ => {}
            }
            let Some(here) = read(&text) else { continue };
            read_here += 1;
            assert_eq!(compose::first(&text).and_then(|node| to_json(&node)).as_ref(), Ok(&here), "{text:?}");
        }
        assert!(read_here > 10_000, "{read_here}");
    }

    #[test]
    fn long_keys_and_deep_texts_are_for_the_parser() {
        let long = |length: usize| format!("{{\"{}\":1}}", "k".repeat(length));
        let parsed = compose::first(&long(1000)).and_then(|node| to_json(&node));
        assert_eq!(read(&long(1000)), parsed.ok());
        assert!(read(&long(1000)).is_some() && read(&long(1001)).is_none());
        assert!(read(&format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200))).is_none());
        assert!(read("[]").is_none() && read("").is_none() && read("{").is_none());
    }
}
