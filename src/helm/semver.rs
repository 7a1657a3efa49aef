//! Versions and constraints as Masterminds/semver reads them: partial versions, a leading `v`, wildcards, `~`, `^`,
//! hyphen ranges, and pre-releases that only match a constraint which has one itself.

use std::cmp::Ordering;
use std::fmt;

/// A version; parts left out are zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// First number.
    pub major: u64,
    /// Second number.
    pub minor: u64,
    /// Third number.
    pub patch: u64,
    /// What follows `-`.
    pub prerelease: String,
    /// What follows `+`.
    pub metadata: String,
    /// The text it was read from.
    pub original: String,
}

impl Version {
    /// Reads a version as `NewVersion` does; `None` where it is none.
    pub fn parse(text: &str) -> Option<Version> {
        let (version, rest) = scan(text)?;
        let Parts { numbers: [major, minor, patch], prerelease, metadata } = version;
        if !rest.is_empty() || !valid_prerelease(&prerelease) {
            return None;
        }
        let number = |part: Option<Part>| match part {
            None => Some(0),
            Some(Part::Number(value)) => Some(value),
            Some(Part::Any) => None,
        };
        Some(Version {
            major: number(major)?,
            minor: number(minor)?,
            patch: number(patch)?,
            prerelease,
            metadata,
            original: text.to_owned(),
        })
    }

    /// Precedence; metadata does not count.
    pub fn compare(&self, other: &Version) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_prerelease(&self.prerelease, &other.prerelease))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn valid_prerelease(text: &str) -> bool {
    text.split('.')
        .all(|part| !(part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit())))
}

fn compare_prerelease(a: &str, b: &str) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut left, mut right) = (a.split('.'), b.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Number(u64),
    Any,
}

struct Parts {
    numbers: [Option<Part>; 3],
    prerelease: String,
    metadata: String,
}

/// Reads the longest version at the start of a text, wildcards included, and gives what follows it.
fn scan(text: &str) -> Option<(Parts, &str)> {
    let mut rest = text.strip_prefix('v').unwrap_or(text);
    let (first, after) = part(rest)?;
    rest = after;
    let mut numbers = [Some(first), None, None];
    for number in &mut numbers[1..] {
        let Some((found, after)) = rest.strip_prefix('.').and_then(part) else { break };
        *number = Some(found);
        rest = after;
    }
    let (prerelease, after) = rest.strip_prefix('-').and_then(identifiers).unwrap_or(("", rest));
    rest = after;
    let (metadata, after) = rest.strip_prefix('+').and_then(identifiers).unwrap_or(("", rest));
    Some((Parts { numbers, prerelease: prerelease.to_owned(), metadata: metadata.to_owned() }, after))
}

fn part(text: &str) -> Option<(Part, &str)> {
    if let Some(rest) = text.strip_prefix(['x', 'X', '*']) {
        return Some((Part::Any, rest));
    }
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((Part::Number(text[..end].parse().ok()?), &text[end..]))
}

fn identifiers(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.')).count();
    let found = text[..end].trim_end_matches('.');
    if found.is_empty() || found.split('.').any(str::is_empty) {
        return None;
    }
    Some((found, &text[found.len()..]))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterEqual),
    ("=>", Operator::GreaterEqual),
    ("<=", Operator::LessEqual),
    ("=<", Operator::LessEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)]
struct Comparator {
    operator: Operator,
    version: Version,
    /// A part is missing or a wildcard: some part, the minor one, the patch.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

/// Alternatives (`||`) of comparators that must all hold.
#[derive(Debug, Clone)]
pub struct Constraint {
    alternatives: Vec<Vec<Comparator>>,
}

impl Constraint {
    /// Reads a constraint as `NewConstraint` does; the error is its text.
    pub fn parse(text: &str) -> Result<Constraint, String> {
        let wrong = || format!("improper constraint: {text}");
        let mut alternatives = Vec::new();
        for group in text.split("||") {
            alternatives.push(comparators(group).ok_or_else(wrong)?);
        }
        Ok(Constraint { alternatives })
    }

    /// Whether a version satisfies it.
    pub fn check(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| all.iter().all(|one| one.holds(version)))
    }
}

/// Helm's `IsCompatibleRange`: false where either side does not parse.
pub fn is_compatible(constraint: &str, version: &str) -> bool {
    match (Constraint::parse(constraint), Version::parse(version)) {
        (Ok(constraint), Some(version)) => constraint.check(&version),
        _ => false,
    }
}

/// One group: comparators by comma or space, or hyphen ranges.
fn comparators(group: &str) -> Option<Vec<Comparator>> {
    let mut found = Vec::new();
    let mut rest = group.trim();
    if rest.is_empty() {
        return None;
    }
    loop {
        let (operator, after) = OPERATORS
            .iter()
            .find_map(|(sign, operator)| Some((Some(*operator), rest.strip_prefix(sign)?)))
            .unwrap_or((None, rest));
        let (parts, after) = scan(after.trim_start())?;
        let mut tail = after.trim_start();
        if operator.is_none()
            && after.len() != tail.len()
            && let Some(upper) = tail.strip_prefix("- ")
        {
            let (high, after) = scan(upper.trim_start())?;
            found.push(comparator(Operator::GreaterEqual, parts)?);
            found.push(comparator(Operator::LessEqual, high)?);
            tail = after.trim_start();
            if !next(&mut tail, after)? {
                return Some(found);
            }
            rest = tail;
            continue;
        }
        found.push(comparator(operator.unwrap_or(Operator::Equal), parts)?);
        if !next(&mut tail, after)? {
            return Some(found);
        }
        rest = tail;
    }
}

/// Whether another comparator follows; `None` where something else does.
fn next(tail: &mut &str, before_trim: &str) -> Option<bool> {
    if tail.is_empty() {
        return Some(false);
    }
    if let Some(after) = tail.strip_prefix(',') {
        *tail = after.trim_start();
        return Some(true);
    }
    (before_trim.len() != tail.len()).then_some(true)
}

fn comparator(operator: Operator, parts: Parts) -> Option<Comparator> {
    let Parts { numbers, prerelease, metadata } = parts;
    if !valid_prerelease(&prerelease) {
        return None;
    }
    let number = |at: usize| match numbers[at] {
        Some(Part::Number(value)) => Some(value),
        Some(Part::Any) | None => None,
    };
    let major = number(0);
    let minor = major.and_then(|_| number(1));
    let patch = minor.and_then(|_| number(2));
    let version = Version {
        major: major.unwrap_or(0),
        minor: minor.unwrap_or(0),
        patch: patch.unwrap_or(0),
        prerelease,
        metadata,
        original: String::new(),
    };
    Some(Comparator {
        operator,
        version,
        dirty: patch.is_none(),
        minor_dirty: major.is_some() && minor.is_none(),
        patch_dirty: minor.is_some() && patch.is_none(),
    })
}

impl Comparator {
    fn holds(&self, v: &Version) -> bool {
        let con = &self.version;
        if self.operator == Operator::NotEqual && !self.dirty {
            return v.compare(con) != Ordering::Equal;
        }
        // A pre-release only matches a constraint that has one.
        if !v.prerelease.is_empty() && con.prerelease.is_empty() {
            return false;
        }
        match self.operator {
            Operator::Equal if self.dirty => self.tilde(v),
            Operator::Equal => v.compare(con) == Ordering::Equal,
            Operator::NotEqual => self.differs(v),
            Operator::Greater => self.greater(v),
            Operator::Less => v.compare(con) == Ordering::Less,
            Operator::GreaterEqual => v.compare(con) != Ordering::Less,
            Operator::LessEqual => self.less_or_equal(v),
            Operator::Tilde => self.tilde(v),
            Operator::Caret => self.caret(v),
        }
    }

    fn differs(&self, v: &Version) -> bool {
        let con = &self.version;
        if con.major != v.major {
            return true;
        }
        if self.minor_dirty {
            return false;
        }
        if con.minor != v.minor {
            return true;
        }
        if self.patch_dirty {
            return compare_prerelease(&v.prerelease, &con.prerelease) != Ordering::Equal;
        }
        v.compare(con) != Ordering::Equal
    }

    fn greater(&self, v: &Version) -> bool {
        let con = &self.version;
        if !self.dirty || v.major != con.major {
            return v.compare(con) == Ordering::Greater;
        }
        if self.minor_dirty {
            return false;
        }
        if self.patch_dirty {
            return v.minor > con.minor;
        }
        v.compare(con) == Ordering::Greater
    }

    fn less_or_equal(&self, v: &Version) -> bool {
        let con = &self.version;
        if !self.dirty {
            return v.compare(con) != Ordering::Greater;
        }
        !(v.major > con.major || (v.major == con.major && v.minor > con.minor && !self.minor_dirty))
    }

    fn tilde(&self, v: &Version) -> bool {
        let con = &self.version;
        if v.compare(con) == Ordering::Less {
            return false;
        }
        if (con.major, con.minor, con.patch) == (0, 0, 0) && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        v.major == con.major && (v.minor == con.minor || self.minor_dirty)
    }

    fn caret(&self, v: &Version) -> bool {
        let con = &self.version;
        if v.compare(con) == Ordering::Less {
            return false;
        }
        if con.major > 0 || self.minor_dirty {
            return v.major == con.major;
        }
        if v.major > 0 {
            return false;
        }
        if con.minor > 0 || self.patch_dirty {
            return v.minor == con.minor;
        }
        v.minor == 0 && con.patch == v.patch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_follow_masterminds() {
        let yes = [
            (">=1.21-0", "v1.34.0-gke.1"),
            (">=1.21", "1.21.0"),
            ("^1.2", "1.9.0"),
            ("~1.2", "1.2.9"),
            ("1.x", "1.7.3"),
            ("*", "3.0.0"),
            (">= 1.0 < 2.0", "1.5.0"),
            (">=1.0, <2 || >3", "4.0.0"),
            ("1.0 - 2.0", "1.9.9"),
            ("!=1.2.3", "1.2.4"),
            ("<=1.4", "1.4.9"),
            ("^0.2.3", "0.2.5"),
        ];
        for (constraint, version) in yes {
            assert!(is_compatible(constraint, version), "{constraint} {version}");
        }
        let no = [
            (">=1.21", "v1.34.0-gke.1"),
            (">1", "1.5.0"),
            (">0", "0.1.0"),
            ("~1.2", "1.3.0"),
            ("^0.2.3", "0.3.0"),
            ("1.2.3 nonsense", "1.2.3"),
            ("", "1.2.3"),
        ];
        for (constraint, version) in no {
            assert!(!is_compatible(constraint, version), "{constraint} {version}");
        }
    }

    #[test]
    fn versions_follow_masterminds() {
        assert_eq!(Version::parse("v1.2").map(|v| v.to_string()).as_deref(), Some("1.2.0"));
        assert_eq!(Version::parse("1.2.3-rc.1+b5").map(|v| v.to_string()).as_deref(), Some("1.2.3-rc.1+b5"));
        for wrong in ["", "a", "1.2.3.4", "1.2.3-01", "1.x", "1.2.3-", "v"] {
            assert!(Version::parse(wrong).is_none(), "{wrong}");
        }
        let v = |text| Version::parse(text).unwrap();
        assert_eq!(v("1.0.0-alpha.2").compare(&v("1.0.0-alpha.10")), Ordering::Less);
        assert_eq!(v("1.0.0").compare(&v("1.0.0-rc")), Ordering::Greater);
    }
}
