//! Semantic versions and constraints as Masterminds/semver 3.4 reads them, for charts and templates: partial
//! versions, `^`, `~`, ranges, and pre-releases that only match alternatives which name one.

mod error;

pub use error::{ConstraintError, VersionError};

use std::cmp::Ordering;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

/// A version; missing parts are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// first number
    pub major: u64,
    /// second number
    pub minor: u64,
    /// third number
    pub patch: u64,
    /// after `-`
    pub pre: String,
    /// after `+`
    pub metadata: String,
    /// as it was written
    pub original: String,
}

const IN_CONSTRAINT: &str = r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";

fn fixed(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern")
}

static ONE: LazyLock<Regex> = LazyLock::new(|| {
    fixed(&format!(r"^[\t\n\f\r ]*({OPERATORS})[\t\n\f\r ]*({IN_CONSTRAINT})[\t\n\f\r ]*$"))
});
static RANGE: LazyLock<Regex> = LazyLock::new(|| {
    fixed(&format!(r"[\t\n\f\r ]*({IN_CONSTRAINT})[\t\n\f\r ]+-[\t\n\f\r ]+({IN_CONSTRAINT})[\t\n\f\r ]*"))
});
static EACH: LazyLock<Regex> =
    LazyLock::new(|| fixed(&format!(r"({OPERATORS})[\t\n\f\r ]*({IN_CONSTRAINT})")));
static VALID: LazyLock<Regex> = LazyLock::new(|| {
    let one = format!(r"({OPERATORS})[\t\n\f\r ]*({IN_CONSTRAINT})[\t\n\f\r ]*");
    fixed(&format!(r"^([\t\n\f\r ]*{one})((?:[\t\n\f\r ]+|,[\t\n\f\r ]*){one})*$"))
});

/// A version as it is written, in its parts.
#[derive(Clone, Copy, Debug)]
struct Written<'t> {
    whole: &'t str,
    major: &'t str,
    /// With the dot before it, as the next one; empty where they are not given.
    minor: &'t str,
    patch: &'t str,
    /// With the `-` before it.
    pre: &'t str,
    /// With the `+` before it.
    metadata: &'t str,
}

impl<'t> Written<'t> {
    /// The version that a text begins with, as long as it can be, and what follows. `digit` says what its
    /// numbers are made of: constraints allow `x` and `*`.
    fn first(text: &'t str, digit: fn(u8) -> bool) -> Option<(Written<'t>, &'t str)> {
        let (major, rest) = run(text.strip_prefix('v').unwrap_or(text), digit);
        if major.is_empty() {
            return None;
        }
        let dotted = |text: &'t str| match text.strip_prefix('.').map(|after| run(after, digit).0.len()) {
            None | Some(0) => ("", text),
            Some(length) => text.split_at(length + 1),
        };
        let (minor, rest) = dotted(rest);
        let (patch, rest) = dotted(rest);
        let (pre, rest) = identifiers(rest, '-');
        let (metadata, rest) = identifiers(rest, '+');
        let whole = &text[..text.len() - rest.len()];
        Some((Written { whole, major, minor, patch, pre, metadata }, rest))
    }
}

/// Splits a text behind its first bytes of this sort, all ASCII.
fn run(text: &str, of: fn(u8) -> bool) -> (&str, &str) {
    text.split_at(text.bytes().take_while(|byte| of(*byte)).count())
}

/// A mark and identifiers joined by dots, and the rest.
fn identifiers(text: &str, mark: char) -> (&str, &str) {
    if !text.starts_with(mark) {
        return ("", text);
    }
    let mut length = 0;
    loop {
        let (identifier, rest) = run(&text[length + 1..], |b| b.is_ascii_alphanumeric() || b == b'-');
        if identifier.is_empty() {
            return text.split_at(length);
        }
        length += identifier.len() + 1;
        if !rest.starts_with('.') {
            return text.split_at(length);
        }
    }
}

impl Version {
    /// Reads a version; missing numbers are 0.
    ///
    /// # Errors
    /// The form, a number that is too large, or a pre-release with a leading zero.
    pub fn parse(text: &str) -> Result<Version, VersionError> {
        let found = Written::first(text, |b| b.is_ascii_digit()).filter(|(_, rest)| rest.is_empty());
        let (found, _) = found.ok_or(VersionError::Form)?;
        let number = |part: &str| -> Result<u64, VersionError> {
            let digits = part.strip_prefix('.').unwrap_or(part);
            if digits.is_empty() {
                return Ok(0);
            }
            digits.parse().map_err(|_| VersionError::NumberOutOfRange { digits: digits.to_owned() })
        };
        let version = Version {
            major: number(found.major)?,
            minor: number(found.minor)?,
            patch: number(found.patch)?,
            pre: found.pre.get(1..).unwrap_or_default().to_owned(),
            metadata: found.metadata.get(1..).unwrap_or_default().to_owned(),
            original: text.to_owned(),
        };
        version.check_pre()?;
        Ok(version)
    }

    fn check_pre(&self) -> Result<(), VersionError> {
        let zero =
            |part: &str| part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit());
        match self.pre.split('.').find(|part| zero(part)) {
            Some(identifier) => Err(VersionError::LeadingZero { identifier: identifier.to_owned() }),
            None => Ok(()),
        }
    }

    /// Order by precedence; metadata does not count.
    #[must_use]
    pub fn compare(&self, other: &Version) -> Ordering {
        let numbers = |v: &Version| (v.major, v.minor, v.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| compare_pre(&self.pre, &other.pre))
    }

    /// The next patch, minor or major version (0, 1, 2).
    pub(crate) fn increment(&self, part: u8) -> Version {
        let mut next = Version { pre: String::new(), metadata: String::new(), ..self.clone() };
        match part {
            0 if self.pre.is_empty() => next.patch += 1,
            0 => {}
            1 => (next.minor, next.patch) = (self.minor + 1, 0),
            _ => (next.major, next.minor, next.patch) = (self.major + 1, 0, 0),
        }
        next.renamed(&self.original)
    }

    /// With `original` written anew, its `v` kept.
    pub(crate) fn renamed(mut self, before: &str) -> Version {
        let prefix = if before.starts_with('v') { "v" } else { "" };
        self.original = format!("{prefix}{self}");
        self
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn compare_pre(a: &str, b: &str) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(x), Ok(y)) => x.cmp(&y),
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

/// The wanted versions: alternatives, each a list whose parts must all match.
#[derive(Clone, Debug)]
pub struct Constraint {
    alternatives: Vec<Vec<Term>>,
}

#[derive(Clone, Debug)]
struct Term {
    operator: String,
    version: Version,
    /// Some number was left open.
    open: bool,
    /// The minor number was left open.
    open_minor: bool,
    /// The patch number was left open.
    open_patch: bool,
}

impl Constraint {
    /// Reads a constraint.
    ///
    /// # Errors
    /// The part that is no constraint, or the version that cannot be read.
    pub fn parse(text: &str) -> Result<Constraint, ConstraintError> {
        match everyday(text) {
            Some(alternatives) => Ok(Constraint { alternatives: alternatives? }),
            None => Constraint::any(text),
        }
    }

    /// Whatever may be written, by Masterminds' own expressions.
    fn any(text: &str) -> Result<Constraint, ConstraintError> {
        let mut whole = text.to_owned();
        for range in RANGE.captures_iter(text) {
            let bounds = format!(">= {}, <= {} ", &range[1], &range[11]);
            whole = whole.replacen(&range[0], &bounds, 1);
        }
        let mut alternatives = Vec::new();
        for part in whole.split("||") {
            if !VALID.is_match(part) {
                return Err(ConstraintError::Form { part: part.to_owned() });
            }
            let terms: Vec<&str> = EACH.find_iter(part).map(|m| m.as_str()).collect();
            let terms = if terms.is_empty() { vec![part] } else { terms };
            alternatives.push(terms.into_iter().map(Term::parse).collect::<Result<_, _>>()?);
        }
        Ok(Constraint { alternatives })
    }

    /// Returns true if a version is wanted. A pre-release is so only where the alternative names a
    /// pre-release itself.
    #[must_use]
    pub fn check(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|terms| {
            let pre = terms.iter().any(|term| !term.version.pre.is_empty());
            (pre || version.pre.is_empty()) && terms.iter().all(|term| term.holds(version))
        })
    }
}

/// The alternatives of a constraint without ranges (`1 - 2`) and oddities, which is nearly every one; `None`
/// for those. The expressions for them take longer to compile than a small chart to render.
fn everyday(text: &str) -> Option<Result<Vec<Vec<Term>>, ConstraintError>> {
    let space = |c: char| matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ');
    let mut alternatives = Vec::new();
    for part in text.split("||") {
        let mut rest = part.trim_start_matches(space);
        let mut terms = Vec::new();
        loop {
            let (operator, after) = run(rest, |b| matches!(b, b'=' | b'!' | b'<' | b'>' | b'~' | b'^'));
            if !matches!(operator, "" | "=" | "!=" | ">" | "<" | ">=" | "=>" | "<=" | "=<" | "~" | "~>" | "^")
            {
                return None;
            }
            let digit = |b: u8| b.is_ascii_digit() || matches!(b, b'x' | b'X' | b'*');
            let (written, after) = Written::first(after.trim_start_matches(space), digit)?;
            terms.push((operator, written));
            rest = after.trim_start_matches(space);
            if rest.is_empty() {
                break;
            }
            match rest.strip_prefix(',') {
                Some(next) => rest = next.trim_start_matches(space),
                None if rest.len() == after.len() => return None,
                None => {}
            }
        }
        alternatives.push(terms);
    }
    let read = |(operator, written): (&str, Written<'_>)| Term::new(operator, &written);
    Some(alternatives.into_iter().map(|terms| terms.into_iter().map(read).collect()).collect())
}

impl Term {
    fn parse(text: &str) -> Result<Term, ConstraintError> {
        let found = ONE.captures(text).ok_or_else(|| ConstraintError::Form { part: text.to_owned() })?;
        let part = |i: usize| found.get(i).map_or("", |m| m.as_str());
        let written = Written {
            whole: part(2),
            major: part(3),
            minor: part(4),
            patch: part(5),
            pre: part(6),
            metadata: "",
        };
        Term::new(part(1), &written)
    }

    fn new(operator: &str, written: &Written<'_>) -> Result<Term, ConstraintError> {
        let Written { whole, major, minor, patch, pre, .. } = written;
        let open = |text: &str| matches!(text.trim_start_matches('.'), "" | "x" | "X" | "*");
        let (mut open_minor, mut open_patch, mut any) = (false, false, true);
        let text = if open(major) {
            format!("0.0.0{pre}")
        } else if open(minor) {
            open_minor = true;
            format!("{major}.0.0{pre}")
        } else if open(patch) {
            open_patch = true;
            format!("{major}{minor}.0{pre}")
        } else {
            any = false;
            (*whole).to_owned()
        };
        let version = Version::parse(&text)
            .map_err(|source| ConstraintError::Version { version: text.clone(), source })?;
        Ok(Term { operator: operator.to_owned(), version, open: any, open_minor, open_patch })
    }

    fn holds(&self, v: &Version) -> bool {
        let c = &self.version;
        let order = v.compare(c);
        match self.operator.as_str() {
            "" | "=" if self.open => self.tilde(v),
            "" | "=" => order == Ordering::Equal,
            "!=" => self.differs(v),
            ">" if !self.open => order == Ordering::Greater,
            ">" => match v.major.cmp(&c.major) {
                Ordering::Equal if self.open_minor => false,
                Ordering::Equal if self.open_patch => v.minor > c.minor,
                Ordering::Equal => order == Ordering::Greater,
                major => major == Ordering::Greater,
            },
            "<" => order == Ordering::Less,
            ">=" | "=>" => order != Ordering::Less,
            "<=" | "=<" if !self.open => order != Ordering::Greater,
            "<=" | "=<" => {
                v.major < c.major || (v.major == c.major && (v.minor <= c.minor || self.open_minor))
            }
            "~" | "~>" => self.tilde(v),
            _ => self.caret(v),
        }
    }

    fn differs(&self, v: &Version) -> bool {
        let c = &self.version;
        if !self.open {
            return v.compare(c) != Ordering::Equal;
        }
        if c.major != v.major || (c.minor != v.minor && !self.open_minor) {
            return true;
        }
        if self.open_minor {
            return false;
        }
        if c.patch != v.patch && !self.open_patch {
            return true;
        }
        if self.open_patch {
            return compare_parts(&v.pre, &c.pre);
        }
        v.compare(c) != Ordering::Equal
    }

    fn tilde(&self, v: &Version) -> bool {
        let c = &self.version;
        if v.compare(c) == Ordering::Less {
            return false;
        }
        if (c.major, c.minor, c.patch) == (0, 0, 0) && !self.open_minor && !self.open_patch {
            return true;
        }
        v.major == c.major && (v.minor == c.minor || self.open_minor)
    }

    fn caret(&self, v: &Version) -> bool {
        let c = &self.version;
        if v.compare(c) == Ordering::Less {
            return false;
        }
        if c.major > 0 || self.open_minor {
            return v.major == c.major;
        }
        if v.major > 0 {
            return false;
        }
        if c.minor > 0 || self.open_patch {
            return v.minor == c.minor;
        }
        v.minor == 0 && c.patch == v.patch
    }
}

/// Returns true if two pre-releases differ where either is there.
fn compare_parts(a: &str, b: &str) -> bool {
    !(a.is_empty() && b.is_empty()) && a != b
}

/// Helm's `IsCompatibleRange`: false where either side does not parse.
#[must_use]
pub fn is_compatible(constraint: &str, version: &str) -> bool {
    match (Constraint::parse(constraint), Version::parse(version)) {
        (Ok(constraint), Ok(version)) => constraint.check(&version),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pre_releases_only_match_constraints_that_name_one() {
        let holds = |constraint: &str, version: &str| {
            Constraint::parse(constraint).unwrap().check(&Version::parse(version).unwrap())
        };
        assert!(!holds(">=1.21", "v1.34.0-gke.1"));
        assert!(holds(">=1.21-0", "v1.34.0-gke.1"));
        assert!(!holds("<1.0 || >2.0", "3.0.0-rc.1"));
        assert!(holds("<1.0 || >2.0-0", "3.0.0-rc.1"));
        assert!(holds("*", "1.2.3"));
        assert!(holds("<=1.2", "1.2.9"));
        assert!(!holds(">1.2", "1.2.5"));
        assert!(holds("1.0 - 2.0", "2.0.9"));
    }

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

    /// Texts of parts that constraints are made of: what is read quickly is read as the expressions do.
    #[test]
    fn everyday_constraints_are_read_as_any_other() {
        const PARTS: [&str; 33] = [
            ">=", "=>", ">", "<", "<=", "=", "!=", "^", "~", "~>", "1", "1.2", "1.2.3", "v1.0", "x", "*",
            "2.x", " ", " ", "  ", ",", ", ", "||", " || ", "-0", "-rc.1", "+b", "-", " - ", "01", ".", "a",
            "|",
        ];
        let mut seed = 88_172_645_463_325_252_u64;
        let mut draw = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % below as u64).unwrap()
        };
        let mut taken = 0;
        for _ in 0..40_000 {
            let length = draw(7) + 1;
            let text: String = (0..length).map(|_| PARTS[draw(PARTS.len())]).collect();
            let Some(quick) = everyday(&text) else { continue };
            let any = Constraint::any(&text).map(|constraint| constraint.alternatives);
            assert_eq!(format!("{quick:?}"), format!("{any:?}"), "{text:?}");
            taken += 1;
        }
        assert!(taken > 1000, "{taken} constraints were read quickly");
    }

    #[test]
    fn versions_are_read_as_by_masterminds_expression() {
        let expression = Regex::new(
            r"^v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?$",
        )
        .unwrap();
        let mut count = 0;
        let characters = ['1', '.', '-', '+', 'v', 'a', '2', '.'];
        for code in 0..8_usize.pow(6) {
            let text: String = (0..6).map(|i| characters[code / 8_usize.pow(i) % 8]).collect();
            let found = Written::first(&text, |b| b.is_ascii_digit()).filter(|(_, rest)| rest.is_empty());
            let wanted = expression.captures(&text);
            assert_eq!(found.is_some(), wanted.is_some(), "{text}");
            let (Some((found, _)), Some(wanted)) = (found, wanted) else { continue };
            let part = |i: usize| wanted.get(i).map_or("", |m| m.as_str());
            let parts = [found.major, found.minor, found.patch, found.pre, found.metadata];
            assert_eq!(parts, [1, 2, 3, 4, 7].map(part), "{text}");
            count += 1;
        }
        assert!(count > 1000, "{count} versions");
    }

    #[test]
    fn versions_follow_masterminds() {
        assert_eq!(Version::parse("v1.2").unwrap().to_string(), "1.2.0");
        assert_eq!(Version::parse("1.2.3-rc.1+b5").unwrap().to_string(), "1.2.3-rc.1+b5");
        for wrong in ["", "a", "1.2.3.4", "1.2.3-01", "1.x", "1.2.3-", "v"] {
            assert!(Version::parse(wrong).is_err(), "{wrong}");
        }
        let v = |text| Version::parse(text).unwrap();
        assert_eq!(v("1.0.0-alpha.2").compare(&v("1.0.0-alpha.10")), Ordering::Less);
        assert_eq!(v("1.0.0").compare(&v("1.0.0-rc")), Ordering::Greater);
    }
}
