//! The order in which go-yaml writes the keys of a map: digit runs by value; letters last where they meet
//! other characters, except in go-yaml v3 (`pretty`) after a digit that both keys share. The rule is not
//! transitive, so Helm's own order may change from run to run; ours is always one of Helm's.

use std::cmp::Ordering;

/// Compares two keys as go-yaml v2 does, or as v3 does.
pub fn key_order(a: &str, b: &str, pretty: bool) -> Ordering {
    quick_order(a.as_bytes(), b.as_bytes(), pretty).unwrap_or_else(|| slow_order(a, b, pretty))
}

/// The order of keys that first differ in ASCII, one of them in a letter, as nearly all do.
fn quick_order(a: &[u8], b: &[u8], pretty: bool) -> Option<Ordering> {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (Some(x), Some(y)) = (a.get(same), b.get(same)) else { return Some(a.len().cmp(&b.len())) };
    if !x.is_ascii() || !y.is_ascii() {
        return None;
    }
    let digits = pretty && same > 0 && a[same - 1].is_ascii_digit();
    match (x.is_ascii_alphabetic(), y.is_ascii_alphabetic()) {
        (true, true) => Some(x.cmp(y)),
        (true, false) => Some(if digits { Ordering::Less } else { Ordering::Greater }),
        (false, true) => Some(if digits { Ordering::Greater } else { Ordering::Less }),
        (false, false) => None,
    }
}

fn slow_order(a: &str, b: &str, pretty: bool) -> Ordering {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut digits = false;
    for i in 0..a.len().min(b.len()) {
        if a[i] == b[i] {
            digits = pretty && is_digit(a[i]);
            continue;
        }
        match (a[i].is_alphabetic(), b[i].is_alphabetic()) {
            (true, true) => return a[i].cmp(&b[i]),
            (true, false) => return if digits { Ordering::Less } else { Ordering::Greater },
            (false, true) => return if digits { Ordering::Greater } else { Ordering::Less },
            (false, false) => return numbers(&a, &b, i),
        }
    }
    a.len().cmp(&b.len())
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn numbers(a: &[char], b: &[char], at: usize) -> Ordering {
    let mut start = 0;
    if a[at] == '0' || b[at] == '0' {
        for &c in a[..at].iter().rev().take_while(|c| is_digit(**c)) {
            if c != '0' {
                start = 1;
                break;
            }
        }
    }
    let run = |text: &[char]| {
        let digits = text[at..].iter().take_while(|c| is_digit(**c));
        digits.fold((start, 0usize), |(value, count), c| {
            (i64::wrapping_add(i64::wrapping_mul(value, 10), i64::from(*c as u32 - '0' as u32)), count + 1)
        })
    };
    run(a).cmp(&run(b)).then(a[at].cmp(&b[at]))
}

/// Sorts by key, stably and without asking the rule to be an order.
pub fn sort_keys<T>(items: &mut [T], pretty: bool, key: impl Fn(&T) -> &str) {
    for i in 1..items.len() {
        let mut j = i;
        while j > 0 && key_order(key(&items[j]), key(&items[j - 1]), pretty) == Ordering::Less {
            items.swap(j, j - 1);
            j -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{quick_order, slow_order};

    #[test]
    fn quick_and_slow_agree() {
        const PARTS: [&str; 12] = ["", "a", "b", "B", "1", "12", "0", "-", ".", "é", "ü", "_"];
        let keys: Vec<String> =
            PARTS.iter().flat_map(|a| PARTS.iter().map(move |b| format!("{a}{b}"))).collect();
        let keys: Vec<String> =
            keys.iter().flat_map(|a| PARTS.iter().map(move |b| format!("{a}{b}"))).collect();
        let mut quick = 0;
        for (a, b) in keys.iter().flat_map(|a| keys.iter().step_by(7).map(move |b| (a, b))) {
            for pretty in [false, true] {
                if let Some(order) = quick_order(a.as_bytes(), b.as_bytes(), pretty) {
                    assert_eq!(order, slow_order(a, b, pretty), "{a} {b} {pretty}");
                    quick += 1;
                }
            }
        }
        assert!(quick > 100_000, "{quick}");
    }
}
