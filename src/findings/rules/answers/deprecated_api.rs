//! An API that goes in a coming version.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "deprecated-api",
    severity: Warning,
    name: "deprecated API",
    what: "The operator calls a version or sets a field that the API server calls deprecated. A later version of \
           Kubernetes, or of the CRD, does not have it any more.",
    when: "the answer to a call of a reconcile has a Warning header that says so. Lists and watches that fill a cache are \
           not looked at.",
    never: "warnings of other sorts, such as those of webhooks.",
    fix: "Use what the warning names in its place.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for warned in evidence.warnings.iter().filter(|warned| is_deprecation(&warned.text)) {
        let what = format!("{} {}", warned.verb, warned.target.split('/').next().unwrap_or_default());
        let why = format!("the API server answers {} {}: {}", warned.verb, warned.target, warned.text);
        let told = Told::of(&RULE, evidence).say(what, why);
        // One for each warning, whatever the object's name: its text names kind and version, or the field.
        out.push(Told { field: warned.text.clone(), place: warned.place.clone(), ..told });
    }
}

/// The words of Kubernetes for kinds, versions and fields that go, or that do nothing any more.
fn is_deprecation(text: &str) -> bool {
    ["deprecated", "unavailable in v", "non-functional in v"].iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_deprecated_api_is_told_once_with_the_words_of_the_server() {
        let run = |text: &str| {
            let mut world = World::new();
            for name in ["a", "b"] {
                world.reconcile(|one| {
                    let target = format!("endpoints/{name}");
                    let (verb, text) = ("create".to_owned(), text.to_owned());
                    one.warnings = vec![WarningFact { verb, target, text, place: None }];
                });
            }
            world.rules()
        };
        let words = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
        assert_eq!(run(words), [("deprecated-api".to_owned(), FindingSeverity::Warning)]);
        assert_eq!(run("spec.nodeName: non-functional in v1.27+").len(), 1);
        assert!(run("unknown field \"spec.foo\"").is_empty());
    }
}
