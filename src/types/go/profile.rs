//! The release of controller-gen that is followed: its output changed from release to release, and a project
//! pins one. Holds no rules itself; the places that differ ask `Profile::at_least`.

use crate::diagnostic::Diagnostic;
use std::fmt;

/// Releases that changed the output, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// v0.14 and older.
    V0_14,
    /// Markers for items, `messageExpression`.
    V0_15,
    /// `+default`, `+required`, descriptions cut at `---`, rules of type and field joined.
    V0_16,
    /// Types with `MarshalText` are strings, `optionalOldSelf`.
    V0_17,
    /// Titles.
    V0_18,
    /// `AtMostOneOf`, `ExactlyOneOf`.
    V0_19,
    /// `AtLeastOneOf`, `k8s:optional`, `k8s:required`.
    V0_20,
    /// `k8s:immutable`, `k8s:enum`, `externalDocs`.
    V0_21,
    /// `omitzero`, `k8s:listType`, `k8s:listMapKey`, numbers followed by words, map keys with `MarshalText`,
    /// one-of rules as sums, patches of webhooks.
    V0_22,
    /// Topology markers on fields of named lists and maps, `k8s:maxItems`, `k8s:minimum`, `k8s:maximum`,
    /// lengths for `k8s:required`, the last list type wins, `omitToolVersion`. Versions that are no release
    /// are taken as this.
    V0_23,
}

/// One release of controller-gen, with its name for the annotation it leaves on each CRD.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Profile {
    level: Level,
    version: String,
}

/// The minor versions of the oldest and of the newest release that was compared, byte for byte.
const OLDEST: u32 = 14;
const NEWEST: u32 = 23;

impl Default for Profile {
    fn default() -> Profile {
        Profile { level: Level::V0_22, version: "v0.22.0".to_owned() }
    }
}

impl Profile {
    /// The profile of a version as a project pins it, such as `v0.18.0`; anything that is no release of
    /// controller-gen (`master`, a commit) is the newest that is known.
    pub fn parse(version: &str) -> Profile {
        let version = version.trim();
        let mut numbers = version.trim_start_matches('v').split(['.', '-', '+']).map(str::parse::<u32>);
        let level = match (numbers.next(), numbers.next()) {
            (Some(Ok(0)), Some(Ok(minor))) => match minor {
                0..=14 => Level::V0_14,
                15 => Level::V0_15,
                16 => Level::V0_16,
                17 => Level::V0_17,
                18 => Level::V0_18,
                19 => Level::V0_19,
                20 => Level::V0_20,
                21 => Level::V0_21,
                22 => Level::V0_22,
                _ => Level::V0_23,
            },
            _ => Level::V0_23,
        };
        Profile { level, version: version.to_owned() }
    }

    /// The release whose rules count.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The version in its own words, such as `v0.18.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Why its output may differ from what is made here, where it is no release that was compared.
    pub fn unknown(&self) -> Option<String> {
        let mut numbers = self.version.trim_start_matches('v').split(['.', '-', '+']).map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
        let (said, known) = match (major, minor) {
            (0, ..OLDEST) => ("older", OLDEST),
            (0, OLDEST..=NEWEST) => return None,
            _ => ("newer", NEWEST),
        };
        let version = &self.version;
        Some(format!(
            "controller-gen {version} is {said} than any release whose output opdev knows: CRDs are made as v0.{known} makes \
             them, and may differ from what {version} writes"
        ))
    }

    /// That as a warning, with what to do.
    pub fn warning(&self) -> Option<Diagnostic> {
        let hint = "Compare with what controller-gen writes, or pin a release that is known.";
        self.unknown().map(|unknown| Diagnostic::warning(unknown, None).with_hint(hint))
    }

    pub(crate) fn at_least(&self, level: Level) -> bool {
        self.level >= level
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn versions_are_ordered_and_kept() {
        let old = Profile::parse("v0.16.5");
        assert_eq!((old.level(), old.version()), (Level::V0_16, "v0.16.5"));
        assert!(old.at_least(Level::V0_15) && !old.at_least(Level::V0_17));
        assert_eq!(Profile::parse("0.9.2").level(), Level::V0_14);
        assert_eq!(Profile::parse("master").level(), Level::V0_23);
        assert_eq!(Profile::parse("v0.22.0").level(), Level::V0_22);
        assert_eq!(Profile::parse("v0.99.0").level(), Level::V0_23);
        assert_eq!(Profile::default(), Profile::parse("v0.22.0"));
        let unknown = |version: &str| Profile::parse(version).unknown().unwrap_or_default();
        expect!["controller-gen v0.9.0 is older than any release whose output opdev knows: CRDs are made as v0.14 makes them, and may differ from what v0.9.0 writes"]
        .assert_eq(&unknown("v0.9.0"));
        expect!["controller-gen v0.99.0 is newer than any release whose output opdev knows: CRDs are made as v0.23 makes them, and may differ from what v0.99.0 writes"]
        .assert_eq(&unknown("v0.99.0"));
        for known in ["v0.14.0", "v0.18.0", "v0.23.1", "master"] {
            assert_eq!(unknown(known), "", "{known}");
        }
    }
}
