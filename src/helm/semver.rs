//! Semantic versions and constraints as Masterminds/semver 3.4 reads them, for charts and templates: partial versions,
//! `^`, `~`, ranges, and pre-releases that only match alternatives which name one.

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

const LOOSE: &str = r"v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
const IN_CONSTRAINT: &str = r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";

fn fixed(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern")
}

static VERSION: LazyLock<Regex> = LazyLock::new(|| fixed(&format!("^{LOOSE}$")));
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

impl Version {
    /// Reads a version; missing numbers are 0.
    ///
    /// # Errors
    /// Masterminds' words about what is wrong.
    pub fn parse(text: &str) -> Result<Version, String> {
        let found = VERSION.captures(text).ok_or("invalid semantic version")?;
        let number = |i: usize| -> Result<u64, String> {
            let digits = found.get(i).map_or("0", |m| m.as_str().trim_start_matches('.'));
            digits.parse().map_err(|_| {
                format!("error parsing version segment: strconv.ParseUint: parsing \"{digits}\": value out of range")
            })
        };
        let text_of = |i: usize| found.get(i).map_or(String::new(), |m| m.as_str().to_owned());
        let version = Version {
            major: number(1)?,
            minor: number(2)?,
            patch: number(3)?,
            pre: text_of(5),
            metadata: text_of(8),
            original: text.to_owned(),
        };
        version.check_pre()?;
        Ok(version)
    }

    fn check_pre(&self) -> Result<(), String> {
        let zero =
            |part: &str| part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit());
        if self.pre.split('.').any(zero) {
            return Err("version segment starts with 0".to_owned());
        }
        Ok(())
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

/// What versions are wanted: alternatives, each a list that must all hold.
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
    /// Masterminds' words about what is wrong.
    pub fn parse(text: &str) -> Result<Constraint, String> {
        let mut whole = text.to_owned();
        for range in RANGE.captures_iter(text) {
            let bounds = format!(">= {}, <= {} ", &range[1], &range[11]);
            whole = whole.replacen(&range[0], &bounds, 1);
        }
        let mut alternatives = Vec::new();
        for part in whole.split("||") {
            if !VALID.is_match(part) {
                return Err(format!("improper constraint: {part}"));
            }
            let terms: Vec<&str> = EACH.find_iter(part).map(|m| m.as_str()).collect();
            let terms = if terms.is_empty() { vec![part] } else { terms };
            alternatives.push(terms.into_iter().map(Term::parse).collect::<Result<_, _>>()?);
        }
        Ok(Constraint { alternatives })
    }

    /// Whether a version is wanted. A pre-release is so only where the alternative names a pre-release itself.
    #[must_use]
    pub fn check(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|terms| {
            let pre = terms.iter().any(|term| !term.version.pre.is_empty());
            (pre || version.pre.is_empty()) && terms.iter().all(|term| term.holds(version))
        })
    }
}

impl Term {
    fn parse(text: &str) -> Result<Term, String> {
        let found = ONE.captures(text).ok_or_else(|| format!("improper constraint: {text}"))?;
        let part = |i: usize| found.get(i).map_or("", |m| m.as_str());
        let open = |text: &str| matches!(text.trim_start_matches('.'), "" | "x" | "X" | "*");
        let (mut open_minor, mut open_patch, mut any) = (false, false, true);
        let written = if open(part(3)) {
            format!("0.0.0{}", part(6))
        } else if open(part(4)) {
            open_minor = true;
            format!("{}.0.0{}", part(3), part(6))
        } else if open(part(5)) {
            open_patch = true;
            format!("{}{}.0{}", part(3), part(4), part(6))
        } else {
            any = false;
            part(2).to_owned()
        };
        let version = Version::parse(&written).map_err(|_| "constraint parser error")?;
        Ok(Term { operator: part(1).to_owned(), version, open: any, open_minor, open_patch })
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

/// Whether two pre-releases differ where either is there.
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
