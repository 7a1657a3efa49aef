//! Flags as Go's programs take them: `--name=value`, `--name value`, `--name` alone. Nothing is refused here,
//! because suites hand over whatever the real program knows.

use std::collections::BTreeMap;

/// What was on a command line: for each flag its values, in the order given.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Flags(BTreeMap<String, Vec<String>>);

impl Flags {
    /// Reads a command line. A word that does not begin with a dash is the value of the flag before it.
    pub(super) fn parse(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut flags = Flags::default();
        let mut open: Option<String> = None;
        for argument in arguments {
            let Some(flag) = argument.strip_prefix('-').map(|rest| rest.trim_start_matches('-')) else {
                if let Some(name) = open.take() {
                    flags.put(name, argument);
                }
                continue;
            };
            if let Some(name) = open.take() {
                flags.put(name, "true".to_owned());
            }
            match flag.split_once('=') {
                Some((name, value)) => flags.put(name.to_owned(), value.to_owned()),
                None => open = Some(flag.to_owned()),
            }
        }
        if let Some(name) = open {
            flags.put(name, "true".to_owned());
        }
        flags
    }

    fn put(&mut self, name: String, value: String) {
        self.0.entry(name).or_default().push(value);
    }

    /// Returns true if a flag was given, whatever it says.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The last value of a flag that says something.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The flags that were given and are not among these.
    pub(super) fn besides(&self, known: &[&str]) -> Vec<&str> {
        self.0.keys().map(String::as_str).filter(|name| !known.contains(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Flags {
        Flags::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn all_forms_are_read_and_the_last_one_wins() {
        let flags = parse("--a=1 --b 2 --c --d=x=y --a=3 --e= -v 4 --f");
        let values: Vec<_> = ["a", "b", "c", "d", "e", "v", "f", "g"].map(|name| flags.get(name)).into();
        assert_eq!(
            values,
            [Some("3"), Some("2"), Some("true"), Some("x=y"), None, Some("4"), Some("true"), None]
        );
        assert!(flags.has("e") && !flags.has("g"));
        assert_eq!(flags.besides(&["a", "b", "v"]), ["c", "d", "e", "f"]);
    }
}
