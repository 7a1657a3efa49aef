//! CRDs of Go types and of YAML files, one set after the other.

use super::super::load::{Files, Loaded, Loader};
use super::*;
use crate::WatchesFile;
use opdev_event::KindHealth;
use serde_json::json;

fn crd_of(kind: &str, field: &str) -> Value {
    let mut crd = crd::scaffold(&Gvk::new("a.b", "v1", kind));
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "properties": {field: {"type": "string"}}});
    crd["spec"]["versions"][0]["subresources"]["scale"] = json!({"specReplicasPath": ".spec.size"});
    crd
}

fn made(kind: &str, field: &str, file: &str) -> Made {
    let place = |line| Place { file: file.to_owned(), line, column: 2 };
    let places = [("v1.spec".to_owned(), place(3)), (format!("v1.spec.{field}"), place(5))].into();
    Made {
        crd: Arc::new(crd_of(kind, field)),
        file: file.to_owned(),
        files: vec![file.to_owned()],
        places,
        broken: false,
    }
}

fn found(file: &str, line: u32) -> Found {
    let place = opdev_types::diagnostic::Place { file: file.to_owned(), line, column: 2 };
    Found::error("expected a type", Some(place))
}

fn files(made: Vec<Made>, found: Vec<Found>) -> Files {
    let texts = ["types/a/set_types.go", "types/b/other_types.go"]
        .map(|file| (file.to_owned(), Arc::from("package v1\n\ntype Set struct {\n\n\tSize\n}\n")))
        .into();
    Files {
        watches: WatchesFile::of(String::new(), Ok(String::new())),
        settings: None,
        charts: BTreeMap::new(),
        named_charts: BTreeMap::new(),
        types: Types { made, found, texts },
        crds: Vec::new(),
        patched: BTreeMap::new(),
        reconcilers: Texts::new(),
        samples: Vec::new(),
        env: BTreeMap::new(),
        options: Arc::default(),
    }
}

fn field_of(loaded: &Loaded, kind: &str) -> String {
    let definition = loaded.sources.definition("a.b", kind).unwrap();
    let pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    definition.crd.pointer(pointer).unwrap().as_object().unwrap().keys().next().unwrap().clone()
}

const A: &str = "types/a/set_types.go";
const B: &str = "types/b/other_types.go";

#[test]
fn a_half_typed_file_takes_no_type_away_and_holds_up_no_other_package() {
    let mut loader = Loader::default();
    let both = files(vec![made("Set", "size", A), made("Other", "x", B)], vec![]);
    let first = loader.load(&both, &[], None, false).unwrap();
    assert_eq!(first.sources.definitions.len(), 2);
    // The rest of a half-typed type lacks its field; the other package changed meanwhile.
    let half = files(vec![made("Set", "gone", A), made("Other", "y", B)], vec![found(A, 5)]);
    let second = loader.load(&half, &[], None, false).unwrap();
    assert_eq!((field_of(&second, "Set"), field_of(&second, "Other")), ("size".to_owned(), "y".to_owned()));
    let error = &second.errors[0];
    assert_eq!(error.place.as_ref().unwrap().to_string(), "types/a/set_types.go:5:2");
    assert!(error.excerpt.as_deref().unwrap().contains("Size"), "{error:?}");
    let broken = second.sources.definition("a.b", "Set").unwrap().broken.as_ref().unwrap();
    assert_eq!(broken.kind.as_ref().unwrap().kind, "Set");
    // Even where it is not made at all for a while.
    let third =
        loader.load(&files(vec![made("Other", "y", B)], vec![found(A, 6)]), &[], None, false).unwrap();
    assert_eq!(field_of(&third, "Set"), "size");
    let mended = loader.load(&files(vec![made("Set", "count", A)], vec![]), &[], None, false).unwrap();
    assert_eq!(field_of(&mended, "Set"), "count");
    assert_eq!(mended.sources.definitions.len(), 1, "a type that the files do not define any more is gone");
    assert!(mended.errors.is_empty());
}

#[test]
fn a_type_that_is_broken_from_the_start_defines_nothing() {
    let first =
        Loader::default().load(&files(vec![made("Set", "size", A)], vec![found(A, 5)]), &[], None, false);
    assert!(first.unwrap().sources.definitions.is_empty());
}

#[test]
fn the_go_type_wins_over_a_written_crd_and_says_so() {
    let mut both = files(vec![made("Set", "size", A)], vec![]);
    both.crds = vec![("config/crd/bases/sets.yaml".to_owned(), crd_of("Set", "old").to_string())];
    let loaded = Loader::default().load(&both, &[], None, false).unwrap();
    assert_eq!((loaded.sources.definitions.len(), field_of(&loaded, "Set")), (1, "size".to_owned()));
    let note = &loaded.sources.diagnostics[0];
    assert_eq!(
        (note.message.as_str(), note.hint.as_deref(), note.severity),
        (
            "config/crd/bases/sets.yaml differs from what the Go types make; the Go types serve",
            Some("opdev crd writes it anew"),
            Severity::Warning
        )
    );
    both.crds = vec![("config/crd/bases/sets.yaml".to_owned(), crd_of("Set", "size").to_string())];
    let same = Loader::default().load(&both, &[], None, false).unwrap();
    assert!(same.sources.diagnostics.is_empty());
    assert_eq!(same.kinds[0].scale, ".spec.size");
    // Texts for people may be others; a field of that name may not.
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    let mut described = crd_of("Set", "size");
    described.pointer_mut(schema).unwrap()["description"] = "A set.".into();
    both.crds = vec![("config/crd/bases/sets.yaml".to_owned(), described.to_string())];
    let same = Loader::default().load(&both, &[], None, false).unwrap();
    assert!(same.sources.diagnostics.is_empty(), "{:?}", same.sources.diagnostics);
    let mut defaulted = described.clone();
    defaulted.pointer_mut(schema).unwrap()["default"] = serde_json::json!({"description": "a"});
    both.crds = vec![("config/crd/bases/sets.yaml".to_owned(), defaulted.to_string())];
    let other = Loader::default().load(&both, &[], None, false).unwrap();
    assert_eq!(other.sources.diagnostics.len(), 1, "a default's own field is no text for people");
    described.pointer_mut(&format!("{schema}/properties")).unwrap()["description"] =
        serde_json::json!({"type": "string"});
    both.crds = vec![("config/crd/bases/sets.yaml".to_owned(), described.to_string())];
    let other = Loader::default().load(&both, &[], None, false).unwrap();
    assert_eq!(other.sources.diagnostics.len(), 1);
    assert!(matches!(same.kinds[0].health, KindHealth::Shown { .. }));
}

#[test]
fn places_are_those_of_the_field_or_of_what_is_around_it() {
    let loaded =
        Loader::default().load(&files(vec![made("Set", "size", A)], vec![]), &[], None, false).unwrap();
    let definition = loaded.sources.definition("a.b", "Set").unwrap();
    let line = |path: &str| definition.place("", path).unwrap().line;
    assert_eq!((line("spec.size"), line(".spec.size.x[*]"), line("spec.none"), line("")), (5, 5, 3, 3));
    assert_eq!(
        (
            definition.place("v1", "spec.size").unwrap().line,
            definition.place("v2", "spec.size").unwrap().line
        ),
        (5, 3)
    );
    let place = definition.place("v1", "spec.size").unwrap();
    assert!(definition.excerpt(&place).unwrap().contains("Size"));
}

#[test]
fn a_broken_crd_file_keeps_its_last_good_crd() {
    let mut loader = Loader::default();
    let mut one = files(vec![], vec![]);
    let path = "config/crd/sets.yaml".to_owned();
    one.crds = vec![(path.clone(), crd_of("Set", "size").to_string())];
    loader.load(&one, &[], None, false).unwrap();
    one.crds = vec![(path.clone(), "kind: CustomResourceDefinition\nspec: [\n".to_owned())];
    let broken = loader.load(&one, &[], None, false).unwrap();
    assert_eq!(field_of(&broken, "Set"), "size");
    assert_eq!(broken.errors[0].place.as_ref().unwrap().file, path);
    one.crds.clear();
    assert!(loader.load(&one, &[], None, false).unwrap().sources.definitions.is_empty());
}
