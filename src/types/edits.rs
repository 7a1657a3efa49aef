//! Tests: types are made up, edited as a developer would, and generated again. Each edit must change the CRD
//! exactly as it should, and the impact it is said to have must follow a few laws.

mod model;

use crate::go::{Files, Generator, Options};
use crate::impact::{Change, Finding, Severity, compare};
use model::{Edit, Model, Random};
use serde_json::{Value, json};
use std::sync::Arc;

/// One Go file, and enough of the API machinery to be a kind.
struct OneFile(Arc<str>);

impl Files for OneFile {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        match path {
            "api/v1/park_types.go" => Some(self.0.clone()),
            "go.mod" => Some("module example.com/park\n\nrequire k8s.io/apimachinery v0.34.0\n".into()),
            META => Some(MACHINERY.into()),
            _ => None,
        }
    }

    fn list(&self, dir: &str) -> Vec<String> {
        let files: &[&str] = match dir {
            "api/v1" => &["park_types.go"],
            "/cache/k8s.io/apimachinery@v0.34.0/pkg/apis/meta/v1" => &["types.go"],
            _ => &[],
        };
        files.iter().map(|file| (*file).to_owned()).collect()
    }

    fn module_cache(&self) -> Option<String> {
        Some("/cache".to_owned())
    }
}

const META: &str = "/cache/k8s.io/apimachinery@v0.34.0/pkg/apis/meta/v1/types.go";
const MACHINERY: &str = r#"package v1

type TypeMeta struct {
	Kind       string `json:"kind,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
}

type ObjectMeta struct {
	Name string `json:"name,omitempty"`
}
"#;

fn generate(generator: &mut Generator, model: &Model) -> Value {
    let text = model.to_string();
    let files = OneFile(text.as_str().into());
    let generated = generator.generate(&files, &["api/v1".to_owned()], &Options::default());
    assert!(generated.diagnostics.is_empty(), "{:#?}\n{text}", generated.diagnostics);
    assert_eq!(generated.crds.len(), 1, "{text}");
    Value::clone(&generated.crds[0].object)
}

fn spec(crd: &mut Value) -> &mut Value {
    crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec").unwrap()
}

/// Checks the impact of an edit.
fn check(edit: &Edit, findings: &[Finding]) {
    let worst = findings.iter().map(|finding| finding.severity).max();
    let has = |severity, kinds: &[Change]| {
        findings.iter().any(|finding| finding.severity == severity && kinds.contains(&finding.kind))
    };
    let fits = match edit {
        Edit::Nothing => findings.is_empty(),
        Edit::Describe { .. } => {
            findings.iter().all(|one| one.kind == Change::Documentation && one.severity == Severity::Info)
                && !findings.is_empty()
        }
        Edit::Remove { .. } => has(Severity::Loss, &[Change::PropertyRemoved]),
        Edit::Rename { .. } => {
            has(Severity::Loss, &[Change::PropertyRenamed, Change::PropertyRemoved])
                && worst <= Some(Severity::Loss)
        }
        Edit::Retype { .. } => has(Severity::Break, &[Change::Type]),
        Edit::Require { .. } => worst == Some(Severity::Break) && has(Severity::Break, &[Change::Required]),
        Edit::Add { required: true, .. } => has(Severity::Break, &[Change::Required]),
        Edit::Add { required: false, .. } => {
            worst == Some(Severity::Info) && has(Severity::Info, &[Change::PropertyAdded])
        }
        Edit::Tighten { .. } => {
            worst == Some(Severity::Break)
                && has(Severity::Break, &[Change::Enum, Change::Bound, Change::Pattern])
        }
        Edit::Relax { .. } | Edit::Allow { .. } => worst.is_some() && worst < Some(Severity::Break),
    };
    assert!(fits, "{edit:?} gives {findings:#?}");
}

#[test]
fn an_edit_changes_what_it_says_and_nothing_else() {
    let mut generator = Generator::default();
    let mut seen = std::collections::BTreeMap::new();
    for seed in 0..120 {
        let mut random = Random(seed);
        let model = Model::random(&mut random);
        let before = generate(&mut generator, &model);
        for _ in 0..6 {
            let edit = Edit::random(&model, &mut random);
            let after = generate(&mut generator, &model.edited(&edit));
            let mut wanted = before.clone();
            edit.expect(spec(&mut wanted));
            assert_eq!(after, wanted, "{edit:?}\n{model}\n{}", model.edited(&edit));
            check(&edit, &compare(Some(&before), &after));
            *seen.entry(edit.name()).or_insert(0) += 1;
        }
    }
    assert!(seen.len() == 10 && seen.values().all(|count| *count > 20), "{seen:?}");
}

/// Whatever the way back is called, nothing is lost on the way there and back that is not said.
#[test]
fn undoing_an_edit_is_an_edit_of_its_own() {
    let mut generator = Generator::default();
    for seed in 1_000..1_060 {
        let mut random = Random(seed);
        let model = Model::random(&mut random);
        let edit = Edit::random(&model, &mut random);
        let (before, after) =
            (generate(&mut generator, &model), generate(&mut generator, &model.edited(&edit)));
        assert_eq!(compare(Some(&before), &before), []);
        let (there, back) = (compare(Some(&before), &after), compare(Some(&after), &before));
        assert_eq!(there.is_empty(), back.is_empty(), "{edit:?}");
        assert_eq!(there.is_empty(), before == after, "{edit:?}");
        let grows = matches!(edit, Edit::Add { required: false, .. } | Edit::Relax { .. });
        if grows {
            assert!(back.iter().any(|one| one.severity >= Severity::Break), "{edit:?} back: {back:#?}");
        }
    }
}

#[test]
fn half_written_types_keep_nothing_and_break_nothing() {
    let mut random = Random(7);
    let text = Model::random(&mut random).to_string();
    let mut generator = Generator::default();
    for end in (0..text.len()).step_by(7).filter(|end| text.is_char_boundary(*end)) {
        let files = OneFile(text[..end].into());
        let generated = generator.generate(&files, &["api/v1".to_owned()], &Options::default());
        for crd in &generated.crds {
            assert_eq!(crd.object["kind"], json!("CustomResourceDefinition"));
        }
    }
}
