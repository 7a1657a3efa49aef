//! The ways in which the next version may take over.

use std::fmt;
use std::str::FromStr;

/// How the new version takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// CRDs, then the operator.
    Plain,
    /// The operator alone.
    CrdLeftOld,
    /// CRDs and the operator, which still has the roles of the old version.
    RolesLeftOld,
    /// As `Plain`, and then the old version again.
    Back,
    /// The old version again: what it does then, it does without any upgrade.
    Same,
}

impl Variant {
    /// All of them, in the order of reports.
    pub const ALL: [Variant; 5] =
        [Variant::Plain, Variant::CrdLeftOld, Variant::RolesLeftOld, Variant::Back, Variant::Same];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Plain => "plain",
            Variant::CrdLeftOld => "crd-left-old",
            Variant::RolesLeftOld => "roles-left-old",
            Variant::Back => "back",
            Variant::Same => "same",
        }
    }

    /// What is done.
    pub fn what(self) -> &'static str {
        match self {
            Variant::Plain => "CRDs and operator are swapped",
            Variant::CrdLeftOld => "the operator alone, as helm upgrade does",
            Variant::RolesLeftOld => "CRDs and operator, without the new roles",
            Variant::Back => "the old version after the new one",
            Variant::Same => "the old version again: the baseline",
        }
    }
}

impl FromStr for Variant {
    type Err = NoVariant;

    fn from_str(text: &str) -> Result<Variant, NoVariant> {
        Variant::ALL
            .into_iter()
            .find(|variant| variant.name() == text)
            .ok_or_else(|| NoVariant(text.to_owned()))
    }
}

/// There is no such variant.
#[derive(Debug)]
pub struct NoVariant(String);

impl fmt::Display for NoVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Variant::ALL.iter().map(|variant| variant.name()).collect();
        write!(f, "{}: the variants are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for NoVariant {}
