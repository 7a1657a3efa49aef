//! One thing that happens to somebody who installs the next version: how bad it is, to which object and
//! field, and how to put it right.

use super::swap::Variant;

/// How bad a finding is, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Worth knowing.
    Hint,
    /// Users notice it.
    Warning,
    /// Data is lost, or something works no more.
    Error,
}

impl Level {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Hint => "hint",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// Sorts of findings, in the order in which they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The new program ends, or cannot be built.
    DoesNotStart,
    /// The API server refuses the new definition.
    DefinitionRefused,
    /// Webhooks that the new version's files have, and nobody serves.
    WebhookNotServed,
    /// A kind that the new version reconciles is not served.
    KindNotServed,
    /// Roles do not give a right that the operator uses.
    RightsMissing,
    /// Leader election does not keep the two versions apart.
    Election,
    /// A write of the operator is refused.
    WriteRefused,
    /// A reconcile fails.
    ReconcileFails,
    /// Stored fields are gone.
    FieldLost,
    /// A field that was written was not stored.
    FieldPruned,
    /// A conversion fails or loses a field.
    Conversion,
    /// Living objects are refused at their next change.
    ObjectRefused,
    /// A manifest of the old version cannot be applied any more.
    OldManifestRefused,
    /// A manifest of the old version cannot be created any more.
    OldManifestNotNew,
    /// A manifest of the new version does not fit the old definition.
    NewManifestRefused,
    /// An object is gone.
    Deleted,
    /// An object has another name.
    Renamed,
    /// An object was deleted and made again.
    MadeAgain,
    /// Objects stay stored at an older version.
    StoredVersion,
    /// A field that no sample has is lost or refused.
    DefinitionChanged,
    /// Pods are made anew.
    PodsRoll,
    /// A condition is worse.
    Condition,
    /// Reconciles go round in a loop.
    Loop,
    /// The operator does not settle.
    Restless,
    /// After a downgrade something of the new version stays.
    StaysAfterBack,
    /// An object is left after all custom resources are deleted.
    LeftBehind,
}

impl Class {
    /// Its name in JSON and JUnit.
    pub fn name(self) -> &'static str {
        match self {
            Class::DoesNotStart => "does-not-start",
            Class::DefinitionRefused => "definition-refused",
            Class::WebhookNotServed => "webhook-not-served",
            Class::KindNotServed => "kind-not-served",
            Class::RightsMissing => "rights-missing",
            Class::Election => "election",
            Class::WriteRefused => "write-refused",
            Class::ReconcileFails => "reconcile-fails",
            Class::FieldLost => "field-lost",
            Class::FieldPruned => "field-pruned",
            Class::Conversion => "conversion",
            Class::ObjectRefused => "object-refused",
            Class::OldManifestRefused => "old-manifest-refused",
            Class::OldManifestNotNew => "old-manifest-not-new",
            Class::NewManifestRefused => "new-manifest-refused",
            Class::Deleted => "deleted",
            Class::Renamed => "renamed",
            Class::MadeAgain => "made-again",
            Class::StoredVersion => "stored-version",
            Class::DefinitionChanged => "definition-changed",
            Class::PodsRoll => "pods-roll",
            Class::Condition => "condition",
            Class::Loop => "loop",
            Class::Restless => "restless",
            Class::StaysAfterBack => "stays-after-back",
            Class::LeftBehind => "left-behind",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub level: Level,
    /// The sort.
    pub class: Class,
    /// The object, such as `Deployment default/web`; or the definition.
    pub object: String,
    /// Its fields, such as `.spec.selector`.
    pub fields: Vec<String>,
    /// One sentence.
    pub title: String,
    /// What was seen, a line each.
    pub lines: Vec<String>,
    /// The fix.
    pub fix: String,
    /// The variants that it was found in.
    pub variants: Vec<Variant>,
    /// Other objects with the same finding.
    pub others: Vec<String>,
}

impl Finding {
    pub(super) fn new(
        level: Level,
        class: Class,
        object: impl Into<String>,
        title: impl Into<String>,
    ) -> Finding {
        Finding {
            level,
            class,
            object: object.into(),
            fields: Vec::new(),
            title: title.into(),
            lines: Vec::new(),
            fix: String::new(),
            variants: Vec::new(),
            others: Vec::new(),
        }
    }

    #[must_use]
    pub(super) fn fields(self, fields: Vec<String>) -> Finding {
        Finding { fields, ..self }
    }

    #[must_use]
    pub(super) fn line(mut self, line: impl Into<String>) -> Finding {
        self.lines.push(line.into());
        self
    }

    #[must_use]
    pub(super) fn lines(mut self, lines: impl IntoIterator<Item = String>) -> Finding {
        self.lines.extend(lines);
        self
    }

    #[must_use]
    pub(super) fn fix(self, fix: impl Into<String>) -> Finding {
        Finding { fix: fix.into(), ..self }
    }

    /// Returns true if both tell of one thing.
    pub(super) fn is_same(&self, other: &Finding) -> bool {
        (self.class, &self.object, &self.fields) == (other.class, &other.object, &other.fields)
    }

    /// Returns true if both tell the same of two objects, so that one of them is told with the other one's
    /// name.
    fn is_alike(&self, other: &Finding) -> bool {
        let kind = |finding: &Finding| finding.object.split(' ').next().map(str::to_owned);
        self.class == other.class
            && self.level == other.level
            && !self.fields.is_empty()
            && self.fields == other.fields
            && self.variants == other.variants
            && kind(self) == kind(other)
    }
}

/// All findings of all variants, worst first: what the baseline has, too, left out; what several variants
/// have told once; what several objects have told with the first one. `found` begins with the variant that
/// the others are compared with.
pub(super) fn merged(found: Vec<(Variant, Vec<Finding>)>) -> Vec<Finding> {
    let baseline: Vec<Finding> = found
        .iter()
        .filter(|(variant, _)| *variant == Variant::Same)
        .flat_map(|(_, findings)| findings.clone())
        .collect();
    let mut all: Vec<Finding> = Vec::new();
    for (variant, findings) in found.into_iter().filter(|(variant, _)| *variant != Variant::Same) {
        for finding in findings {
            if baseline.iter().any(|known| known.is_same(&finding)) {
                continue;
            }
            match all.iter_mut().find(|known| known.is_same(&finding)) {
                Some(known) => {
                    known.level = known.level.max(finding.level);
                    if !known.variants.contains(&variant) {
                        known.variants.push(variant);
                    }
                }
                None => all.push(Finding { variants: vec![variant], ..finding }),
            }
        }
    }
    let mut told: Vec<Finding> = Vec::new();
    for finding in all {
        match told.iter_mut().find(|known| known.is_alike(&finding)) {
            Some(known) => known.others.push(finding.object),
            None => told.push(finding),
        }
    }
    told.sort_by(|a, b| {
        b.level
            .cmp(&a.level)
            .then_with(|| (a.class, &a.object, &a.fields).cmp(&(b.class, &b.object, &b.fields)))
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(level: Level, object: &str, field: &str) -> Finding {
        Finding::new(level, Class::PodsRoll, object, "pods roll").fields(vec![field.to_owned()])
    }

    #[test]
    fn the_baseline_is_left_out_and_variants_and_objects_are_told_once() {
        let (error, warning) = (Level::Error, Level::Warning);
        let found = vec![
            (
                Variant::Plain,
                vec![finding(warning, "Deployment a/x", ".a"), finding(error, "Deployment a/z", ".b")],
            ),
            (
                Variant::CrdLeftOld,
                vec![finding(warning, "Deployment a/x", ".a"), finding(error, "Pod a/p", ".a")],
            ),
            (Variant::Same, vec![finding(warning, "Deployment a/z", ".b")]),
        ];
        let told = merged(found);
        let names: Vec<&str> = told.iter().map(|one| one.object.as_str()).collect();
        assert_eq!(names, ["Pod a/p", "Deployment a/x"], "worst first, and not what the old one does, too");
        assert_eq!(told[1].variants, [Variant::Plain, Variant::CrdLeftOld]);
        let both = vec![finding(warning, "Deployment a/x", ".a"), finding(warning, "Deployment a/y", ".a")];
        let told = merged(vec![(Variant::Plain, both)]);
        assert_eq!((told.len(), told[0].others.as_slice()), (1, ["Deployment a/y".to_owned()].as_slice()));
    }
}
