//! Rules that the library which checks schemas would read in another way than Helm's: patterns are in Go's
//! syntax, and a multiple of a fraction is reckoned exactly. A schema is rewritten before it is compiled, and
//! what it then says is told in the author's words.

use boon::{Compiler, Format};
use opdev_object::go::pattern::{self, PatternError};
use serde_json::{Map, Number, Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::rc::Rc;

/// Where the schemas of divisors are, which nobody wrote.
const DIVISORS: &str = "opdev://divisors/";

/// So many different divisors are reckoned exactly in one schema.
const SLOTS: usize = 32;

/// The rules of a schema, and of those it refers to.
#[derive(Clone, Default)]
pub(super) struct Rules(Rc<RefCell<Found>>);

#[derive(Default)]
struct Found {
    /// Patterns as they are written, by what the library gets.
    patterns: BTreeMap<String, String>,
    /// The divisors of `multipleOf`.
    divisors: Vec<Number>,
}

/// The kept rules of a compiled schema.
#[derive(Clone, Default)]
pub(super) struct Written {
    patterns: BTreeMap<String, String>,
    divisors: Vec<Number>,
}

thread_local! {
    /// The divisors of the schema that is checked at the moment: the library's formats carry nothing with
    /// them.
    static DIVISORS_IN_USE: RefCell<Vec<Number>> = const { RefCell::new(Vec::new()) };
}

impl Rules {
    /// Rewrites a schema.
    ///
    /// # Errors
    /// A pattern that Go does not accept.
    pub(super) fn rewrite(&self, mut schema: Value) -> Result<Value, PatternError> {
        self.schema(&mut schema)?;
        Ok(schema)
    }

    fn schema(&self, schema: &mut Value) -> Result<(), PatternError> {
        let Value::Object(keywords) = schema else { return Ok(()) };
        for (keyword, value) in keywords.iter_mut() {
            match (keyword.as_str(), value) {
                // Their values are no schemas.
                ("enum" | "const" | "default" | "examples" | "required" | "$vocabulary", _) => {}
                ("pattern", Value::String(text)) => *text = self.pattern(text)?,
                ("patternProperties", Value::Object(schemas)) => {
                    for (key, mut below) in std::mem::take(schemas) {
                        self.schema(&mut below)?;
                        schemas.insert(self.pattern(&key)?, below);
                    }
                }
                (
                    "properties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies",
                    Value::Object(all),
                ) => {
                    all.values_mut().try_for_each(|below| self.schema(below))?;
                }
                (_, Value::Array(all)) => all.iter_mut().try_for_each(|below| self.schema(below))?,
                (_, below) => self.schema(below)?,
            }
        }
        self.divisor(keywords);
        Ok(())
    }

    fn pattern(&self, text: &str) -> Result<String, PatternError> {
        pattern::compile_text(text)?;
        let translated = pattern::translate(text)?;
        if translated != text {
            self.0.borrow_mut().patterns.insert(translated.clone(), text.to_owned());
        }
        Ok(translated)
    }

    /// Puts a reference in the place of a divisor that is a fraction.
    fn divisor(&self, keywords: &mut Map<String, Value>) {
        let Some(Value::Number(divisor)) = keywords.get("multipleOf") else { return };
        if divisor.as_f64().is_none_or(|divisor| divisor <= 0.0 || divisor.fract() == 0.0) {
            return;
        }
        let divisor = divisor.clone();
        let mut found = self.0.borrow_mut();
        let slot = found.divisors.iter().position(|known| *known == divisor).unwrap_or(found.divisors.len());
        if slot >= SLOTS {
            return;
        }
        if slot == found.divisors.len() {
            found.divisors.push(divisor);
        }
        keywords.remove("multipleOf");
        let rule = json!({"$ref": format!("{DIVISORS}{slot}")});
        match keywords.get_mut("allOf") {
            Some(Value::Array(all)) => all.push(rule),
            _ => {
                keywords.insert("allOf".to_owned(), json!([rule]));
            }
        }
    }

    /// The schema of a divisor: in this draft the library asks formats, which can be ours.
    pub(super) fn load(&self, url: &str) -> Option<Value> {
        let slot: usize = url.strip_prefix(DIVISORS)?.parse().ok()?;
        let name = NAMES.get(slot)?;
        Some(json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": name}))
    }

    pub(super) fn register(compiler: &mut Compiler) {
        for (name, func) in NAMES.iter().zip(CHECKS) {
            compiler.register_format(Format { name, func });
        }
        compiler.register_format(Format { name: "semver", func: semver });
        compiler.register_format(Format { name: "uri-reference", func: uri_reference });
        compiler.register_format(Format { name: "iri-reference", func: uri_reference });
        // Helm's library does not know it.
        compiler.register_format(Format { name: "idn-email", func: |_| Ok(()) });
    }

    pub(super) fn written(&self) -> Written {
        let found = self.0.borrow();
        Written { patterns: found.patterns.clone(), divisors: found.divisors.clone() }
    }
}

impl Written {
    /// Checks values with these divisors at hand.
    pub(super) fn during<T>(&self, check: impl FnOnce() -> T) -> T {
        let before = DIVISORS_IN_USE.replace(self.divisors.clone());
        let checked = check();
        DIVISORS_IN_USE.replace(before);
        checked
    }

    /// A pattern as it is written in the schema.
    pub(super) fn pattern<'p>(&'p self, translated: &'p str) -> &'p str {
        self.patterns.get(translated).map_or(translated, String::as_str)
    }

    /// The divisor of a format that is one of ours.
    pub(super) fn divisor(&self, format: &str) -> Option<&Number> {
        self.divisors.get(NAMES.iter().position(|name| *name == format)?)
    }
}

type Check = fn(&Value) -> Result<(), Box<dyn Error>>;

/// Checks that a number is a multiple of the divisor in a slot.
fn check<const SLOT: usize>(value: &Value) -> Result<(), Box<dyn Error>> {
    let Value::Number(number) = value else { return Ok(()) };
    let divisor = DIVISORS_IN_USE.with_borrow(|divisors| divisors.get(SLOT).cloned());
    match divisor.is_none_or(|divisor| is_multiple(number, &divisor)) {
        true => Ok(()),
        false => Err("not a multiple".into()),
    }
}

macro_rules! slots {
    ($($slot:literal)*) => {
        const CHECKS: [Check; SLOTS] = [$(check::<$slot>),*];
        const NAMES: [&str; SLOTS] = [$(concat!("opdev-divisor-", $slot)),*];
    };
}

slots!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

/// Returns true if a number is a multiple, both as they are written in decimal digits.
fn is_multiple(number: &Number, divisor: &Number) -> bool {
    let exact = || {
        let (a, b) = (digits(number)?, digits(divisor)?);
        let least = a.1.min(b.1);
        let scaled = |(digits, exponent): (i128, i32)| {
            digits.checked_mul(10_i128.checked_pow(u32::try_from(exponent - least).ok()?)?)
        };
        scaled(a)?.checked_rem(scaled(b)?)
    };
    match exact() {
        Some(rest) => rest == 0,
        // More digits than that are in no schema that a person wrote.
        None => number.as_f64().zip(divisor.as_f64()).is_none_or(|(a, b)| (a / b).fract() == 0.0),
    }
}

/// The digits of a number, and the power of ten that they stand for.
fn digits(number: &Number) -> Option<(i128, i32)> {
    let text = number.to_string();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let fraction = mantissa.split_once('.').map_or("", |(_, fraction)| fraction).trim_end_matches('0');
    let whole = mantissa.split_once('.').map_or(mantissa, |(whole, _)| whole);
    let exponent =
        exponent.trim_start_matches('+').parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?;
    Some((format!("{whole}{fraction}").parse().ok()?, exponent))
}

/// Helm's library knows this format, and asks for a strict version of semver 2.
fn semver(value: &Value) -> Result<(), Box<dyn Error>> {
    let Value::String(text) = value else { return Ok(()) };
    let (rest, build) =
        text.split_once('+').map_or((text.as_str(), None), |(rest, build)| (rest, Some(build)));
    let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
    let number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let before = |part: &str| word(part) && (number(part) || !part.bytes().all(|b| b.is_ascii_digit()));
    let parts: Vec<&str> = core.split('.').collect();
    let valid = parts.len() == 3
        && parts.iter().all(|part| number(part))
        && pre.is_none_or(|pre| pre.split('.').all(before))
        && build.is_none_or(|build| build.split('.').all(word));
    if valid { Ok(()) } else { Err("invalid semantic version".into()) }
}

/// A reference as Go's net/url takes it, where a backslash is none.
fn uri_reference(value: &Value) -> Result<(), Box<dyn Error>> {
    let Value::String(text) = value else { return Ok(()) };
    if text.chars().any(|c| c < ' ' || c == '\u{7f}') {
        return Err("net/url: invalid control character in URL".into());
    }
    if text.contains('\\') {
        return Err("contains \\".into());
    }
    let escaped =
        |at: usize| text.get(at + 1..at + 3).is_some_and(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
    let path = text.split(['?', '#']).next().unwrap_or(text);
    if let Some((at, _)) = path.match_indices('%').find(|(at, _)| !escaped(*at)) {
        return Err(format!("invalid URL escape {:?}", text.get(at..at + 3).unwrap_or(&text[at..])).into());
    }
    if text.starts_with(':') {
        return Err("missing protocol scheme".into());
    }
    let first = path.split('/').next().unwrap_or(path);
    let scheme = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    match first.split_once(':') {
        Some((name, _)) if !scheme(name) => Err("first path segment in URL cannot contain colon".into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_fractions_are_exact() {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        let of = |a: &str, b: &str| is_multiple(&number(a), &number(b));
        for (a, b) in [
            ("0.07", "0.01"),
            ("19.99", "0.01"),
            ("4.35", "0.01"),
            ("0.3", "0.1"),
            ("2.3", "0.1"),
            ("1.001", "0.001"),
            ("3e-8", "1e-8"),
            ("5", "2.5"),
            ("-0.3", "0.1"),
            ("0", "0.1"),
        ] {
            assert!(of(a, b), "{a} of {b}");
        }
        for (a, b) in [("0.075", "0.01"), ("1", "0.3"), ("0.35", "0.1"), ("1e-9", "1e-8")] {
            assert!(!of(a, b), "{a} of {b}");
        }
    }
}
