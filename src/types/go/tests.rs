//! Tests from Go text to CRDs, on files in memory.

use super::*;
use expect_test::expect;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Files in memory.
#[derive(Default)]
pub(crate) struct Memory(BTreeMap<String, Arc<str>>);

impl Memory {
    pub(crate) fn of(files: &[(&str, &str)]) -> Memory {
        Memory(files.iter().map(|(path, text)| ((*path).to_owned(), Arc::from(*text))).collect())
    }
}

impl Files for Memory {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.0.get(path).cloned()
    }

    fn list(&self, dir: &str) -> Vec<String> {
        let prefix = if dir == "." { String::new() } else { format!("{dir}/") };
        let below = self.0.keys().filter_map(|path| path.strip_prefix(&prefix));
        let names: BTreeSet<&str> = below.filter_map(|rest| rest.split('/').next()).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    fn module_cache(&self) -> Option<String> {
        Some("/cache".to_owned())
    }

    fn go_root(&self) -> Option<String> {
        Some("/go".to_owned())
    }
}

#[test]
fn a_kind_becomes_a_crd() {
    let files = Memory::of(&[
        ("go.mod", "module example.com/op\n\ngo 1.24\n\nrequire k8s.io/apimachinery v0.34.0\n"),
        (
            "api/v1/groupversion_info.go",
            "// Package v1 is the API.\n// +kubebuilder:object:generate=true\n// +groupName=example.com\npackage v1\n",
        ),
        (
            "api/v1/thing_types.go",
            r#"package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ThingSpec says what is wanted.
type ThingSpec struct {
	// Size is the number of them.
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`

	Names []string `json:"names,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status

// Thing is a thing.
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ThingSpec `json:"spec,omitempty"`
}
"#,
        ),
    ]);
    let made = Generator::new().generate(&files, &["./...".to_owned()], &Options::default());
    assert_eq!(made.crds.len(), 1, "{:?}", made.diagnostics);
    let crd = &made.crds[0];
    assert_eq!(crd.object["metadata"]["name"], "things.example.com");
    let spec = &crd.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let expected = serde_json::json!({
        "description": "ThingSpec says what is wanted.",
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"description": "Size is the number of them.", "type": "integer", "format": "int32", "minimum": 0},
            "names": {"type": "array", "items": {"type": "string"}},
        },
    });
    assert_eq!(*spec, expected);
    assert_eq!(crd.places["v1.spec.size"].line, 9);
    assert!(!crd.broken);
}

const KIND: &str = r#"// +groupName=example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

type ThingSpec struct {
	// Size of it.
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`
	Part *Part `json:"part,omitempty"`
}

type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec ThingSpec `json:"spec"`
}
"#;

const PART: &str =
    "package v1\n\n// Part of a thing.\ntype Part struct {\n\tName string `json:\"name\"`\n}\n";

fn project(files: &[(&str, &str)]) -> Memory {
    let mut all = vec![("go.mod", "module example.com/op\n")];
    all.extend_from_slice(files);
    Memory::of(&all)
}

fn generate(files: &Memory) -> Generated {
    Generator::new().generate(files, &["./...".to_owned()], &Options::default())
}

fn spec(made: &Generated) -> &Value {
    &made.crds[0].object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
}

fn messages(made: &Generated) -> Vec<&str> {
    made.diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect()
}

#[test]
fn one_changed_file_is_parsed_again_and_nothing_else() {
    let mut files = project(&[("api/v1/thing.go", KIND), ("api/v1/part.go", PART)]);
    let mut generator = Generator::new();
    let options = Options::default();
    let first = generator.generate(&files, &["./api/...".to_owned()], &options);
    assert_eq!(first.crds[0].files, ["api/v1/part.go", "api/v1/thing.go"]);
    assert_eq!(first.read, ["api/v1/part.go", "api/v1/thing.go"]);
    assert_eq!(first.crds[0].places["v1.spec.part.name"].file, "api/v1/part.go");
    let parsed = generator.store.parsed();
    files.0.insert("api/v1/part.go".to_owned(), PART.replace("Name string", "Name int64").into());
    let second = generator.generate(&files, &["./api/...".to_owned()], &options);
    assert_eq!(generator.store.parsed() - parsed, 1);
    assert_eq!(spec(&second)["part"]["properties"]["name"]["format"], "int64");
    files.0.insert("api/v1/part.go".to_owned(), PART.into());
    let third = generator.generate(&files, &["./api/...".to_owned()], &options);
    assert_eq!(third.crds[0].object, first.crds[0].object);
    let short = Options { max_desc_len: Some(4), ..Options::default() };
    let fourth = generator.generate(&files, &["./api/...".to_owned()], &short);
    assert_eq!(spec(&fourth)["size"]["description"], "Size...");
}

#[test]
fn a_file_that_is_being_typed_says_where_and_marks_its_crds() {
    let half = KIND.replace("Size int32 `json:\"size\"`", "Size int32 `json:");
    let made = generate(&project(&[("api/v1/thing.go", &half), ("api/v1/part.go", PART)]));
    let error = &made.diagnostics[0];
    assert_eq!(error.severity, crate::diagnostic::Severity::Error);
    assert_eq!(error.place.as_ref().unwrap().file, "api/v1/thing.go");
    assert!(made.crds.iter().all(|crd| crd.broken), "{made:?}");
    // Another package does not suffer.
    let other = KIND.replace("example.com", "other.com").replace("Thing", "Other");
    let files = project(&[("api/v1/thing.go", &half), ("other/v1/o.go", &other), ("other/v1/part.go", PART)]);
    let made = generate(&files);
    let whole: Vec<&Crd> = made.crds.iter().filter(|crd| !crd.broken).collect();
    assert_eq!(whole.len(), 1);
    assert_eq!(whole[0].object["metadata"]["name"], "others.other.com");
}

#[test]
fn imports_are_found_where_go_finds_them() {
    let with = |import: &str, ty: &str| {
        KIND.replace("import metav1", "import (\n\tmetav1")
            .replace("meta/v1\"\n", &format!("meta/v1\"\n\t\"{import}\"\n)\n"))
            .replace("*Part", ty)
    };
    let size = |text: &str| format!("package {text}\n\ntype Size int64\n");
    let work =
        [("go.work", "go 1.24\n\nuse (\n\t.\n\t./lib\n)\n"), ("lib/go.mod", "module example.com/lib\n")];
    let replaced = "module example.com/op\n\nrequire (\n\texample.com/dep v1.2.3\n\tgithub.com/Big/dep/v2 v2.0.0 // indirect\n)\n\nreplace example.com/dep => ../dep\n";
    for (name, import, ty, more) in [
        (
            "the same module",
            "example.com/op/pkg/sizes",
            "*sizes.Size",
            vec![("pkg/sizes/s.go", size("sizes"))],
        ),
        ("go.work", "example.com/lib/sizes", "*sizes.Size", vec![("lib/sizes/s.go", size("sizes"))]),
        (
            "vendor",
            "example.com/far/sizes",
            "*sizes.Size",
            vec![("vendor/example.com/far/sizes/s.go", size("sizes"))],
        ),
        ("replace", "example.com/dep/sizes", "*sizes.Size", vec![("../dep/sizes/s.go", size("sizes"))]),
        (
            "the module cache",
            "github.com/Big/dep/v2/go-sizes",
            "*sizes.Size",
            vec![("/cache/github.com/!big/dep/v2@v2.0.0/go-sizes/s.go", size("sizes"))],
        ),
    ] {
        let text = with(import, ty);
        let mut all = vec![("go.mod", replaced), ("api/v1/thing.go", text.as_str())];
        all.extend(work);
        all.extend(more.iter().map(|(path, text)| (*path, text.as_str())));
        let made = generate(&Memory::of(&all));
        assert_eq!(spec(&made)["part"]["format"], "int64", "{name}: {:?}", made.diagnostics);
        assert!(!made.crds[0].broken, "{name}");
    }
    // Types of another version would be written into the project's files.
    let text = with("github.com/Big/dep/v2", "*dep.Size");
    let other = size("dep");
    let made = generate(&Memory::of(&[
        ("go.mod", replaced),
        ("api/v1/thing.go", text.as_str()),
        ("/cache/github.com/!big/dep/v2@v2.1.0/s.go", other.as_ref()),
    ]));
    assert!(made.crds[0].broken);
    let error =
        made.diagnostics.iter().find(|one| one.message.contains("dep/v2 v2.0.0 is not on this machine"));
    expect!["Run `go mod download github.com/Big/dep/v2` or `go mod vendor`."]
        .assert_eq(error.unwrap().hint.as_ref().unwrap());
}

/// A file that is written must not have the schemas of another Kubernetes than the project's.
#[test]
fn what_is_written_has_no_schemas_of_another_release() {
    let text = KIND.replace("import metav1", "import corev1 \"k8s.io/api/core/v1\"\nimport metav1");
    let text = text.replace("*Part", "corev1.ResourceList");
    let made = |version: &str, exact: bool| {
        let go_mod = format!(
            "module example.com/op\nrequire k8s.io/api {version}\nrequire k8s.io/apimachinery {version}\n"
        );
        let files = Memory::of(&[("go.mod", &go_mod), ("api/v1/thing.go", &text)]);
        let options = Options { exact, ..Options::default() };
        Generator::new().generate(&files, &["api/v1".to_owned()], &options)
    };
    assert!(!made("v0.32.1", false).crds[0].broken);
    let refused = made("v0.32.1", true);
    assert!(refused.crds[0].broken);
    let error = refused.diagnostics.iter().find(|one| one.severity == crate::diagnostic::Severity::Error);
    expect!["Run `go mod download k8s.io/api` or `go mod vendor`."]
        .assert_eq(error.unwrap().hint.as_ref().unwrap());
    assert!(!made("v0.37.2", true).crds[0].broken, "the release that is known");
    // Its types that are the same in every release come first, as in every kind.
    let text = KIND.replace("*Part", "metav1.LabelSelector");
    let go_mod = "module example.com/op\nrequire k8s.io/apimachinery v0.30.99\n";
    let files = Memory::of(&[("go.mod", go_mod), ("api/v1/thing.go", &text)]);
    let options = Options { exact: true, ..Options::default() };
    let refused = Generator::new().generate(&files, &["api/v1".to_owned()], &options);
    assert!(refused.crds[0].broken, "{:?}", refused.diagnostics);
}

#[test]
fn without_source_the_facts_or_the_module_are_named() {
    let go_mod = "module example.com/op\nrequire k8s.io/api v0.34.1\nrequire example.com/dep v1.2.3\n";
    let text = KIND.replace(
        "import metav1",
        "import corev1 \"k8s.io/api/core/v1\"\nimport \"example.com/dep/x\"\nimport metav1",
    );
    let text = text.replace("*Part", "corev1.Container").replace(
        "Size int32",
        "Asked corev1.ResourceList `json:\"asked\"`\n\tBy map[corev1.ResourceName]corev1.PullPolicy `json:\"by\"`\n\tSize x.Size",
    );
    let made = generate(&Memory::of(&[("go.mod", go_mod), ("api/v1/thing.go", &text)]));
    let part = &spec(&made)["part"];
    assert_eq!(
        part["properties"]["ports"]["x-kubernetes-list-map-keys"],
        serde_json::json!(["containerPort", "protocol"])
    );
    assert_eq!(
        part["properties"]["resources"]["properties"]["limits"]["additionalProperties"]["x-kubernetes-int-or-string"],
        true
    );
    assert_eq!(part["required"], serde_json::json!(["name"]));
    assert_eq!(spec(&made)["asked"]["additionalProperties"]["x-kubernetes-int-or-string"], true);
    assert_eq!(spec(&made)["by"]["additionalProperties"]["type"], "string");
    assert!(made.crds[0].broken);
    let said = messages(&made).join("\n");
    assert!(said.contains("the source of k8s.io/api v0.34.1 is not on this machine"), "{said}");
    assert!(said.contains("the schema of example.com/dep/x.Size is unknown: the source of module example.com/dep v1.2.3 is not on this machine"), "{said}");
    let error = made.diagnostics.iter().find(|d| d.message.contains("x.Size")).unwrap();
    assert_eq!(error.place.as_ref().map(|place| (place.line, place.column)), Some((13, 7)), "{error:?}");
}

#[test]
fn a_project_without_go_is_not_told_to_download_modules() {
    let api = [("api/v1/thing.go", KIND), ("api/v1/part.go", PART)];
    let said = |more: &[(&str, &str)]| {
        let all: Vec<(&str, &str)> = api.iter().chain(more).copied().collect();
        let made = generate(&Memory::of(&all));
        assert!(!made.crds[0].broken, "{:?}", made.diagnostics);
        made.diagnostics.into_iter().filter_map(|one| one.hint).collect::<Vec<_>>()
    };
    assert_eq!(said(&[]), [""; 0]);
    let go_mod = "module example.com/op\n";
    assert_eq!(said(&[("go.mod", go_mod)]), ["Run `go get k8s.io/apimachinery`."]);
    let go_mod = format!("{go_mod}require k8s.io/apimachinery v0.34.1\n");
    assert_eq!(said(&[("go.mod", &go_mod)]), ["Run `go mod download`."]);
}

#[test]
fn standard_types_are_known() {
    let text = KIND.replace("import metav1", "import (\n\t\"encoding/json\"\n\t\"time\"\n)\nimport metav1");
    let text = text
        .replace("*Part", "time.Duration")
        .replace("Size int32", "Size json.RawMessage")
        .replace("\t// +kubebuilder:validation:Minimum=0\n", "");
    let made = generate(&project(&[("api/v1/thing.go", &text)]));
    assert_eq!(spec(&made)["part"]["format"], "int64");
    assert_eq!(spec(&made)["size"]["format"], "byte");
    let installed = "package time\n\n// Duration is how long.\ntype Duration int64\n";
    let made = generate(&project(&[("api/v1/thing.go", &text), ("/go/src/time/time.go", installed)]));
    assert_eq!(spec(&made)["part"]["description"], "Duration is how long.");
    let made = generate(&project(&[("api/v1/thing.go", &text.replace("time.Duration", "time.Time"))]));
    assert_eq!(
        made.diagnostics.iter().find(|d| d.message.contains("time.Time")).unwrap().hint.as_deref(),
        Some("Use metav1.Time.")
    );
}

#[test]
fn rbac_markers_stand_where_controller_gen_looks() {
    let text = "package c\n\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list\n\n// Reconcile is documented.\n// +kubebuilder:rbac:groups=lost,resources=x,verbs=get\nfunc Reconcile() {\n\t// +kubebuilder:rbac:groups=lost,resources=y,verbs=get\n}\n// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=*\n";
    let made = generate(&project(&[("internal/c/c.go", text)]));
    let found: Vec<(u32, &Value)> =
        made.rbac.iter().map(|marker| (marker.place.line, &marker.args["resources"])).collect();
    assert_eq!(found, [(3, &serde_json::json!(["deployments"])), (10, &serde_json::json!(["pods"]))]);
}

#[test]
fn odd_markers_are_told_with_their_place() {
    let text = KIND.replace("validation:Minimum=0", "validation:Minimun=0");
    let made = generate(&project(&[("api/v1/thing.go", &text), ("api/v1/part.go", PART)]));
    let warning = &made.diagnostics[0];
    assert_eq!(warning.hint.as_deref(), Some("Did you mean +kubebuilder:validation:Minimum?"));
    assert_eq!(warning.place.as_ref().map(|place| (place.line, place.column)), Some((8, 5)));
    assert!(!made.crds[0].broken);
}

#[test]
fn hostile_files_end_and_never_panic() {
    // Types that double at each step, and a type that is nested without end.
    let mut bomb = String::from(KIND);
    for level in 0..60 {
        bomb += &format!("type T{level} struct {{ A T{0} `json:\"a\"`; B T{0} `json:\"b\"` }}\n", level + 1);
    }
    bomb += "type T60 string\ntype Part T0\n";
    let made = generate(&project(&[("api/v1/thing.go", &bomb)]));
    assert!(
        made.crds[0].broken && messages(&made).iter().any(|text| text.contains("too large")),
        "{:?}",
        made.diagnostics
    );
    let mut chain = String::from(KIND);
    for level in 0..2000 {
        chain += &format!("type C{level} struct {{ A *C{} `json:\"a\"` }}\n", level + 1);
    }
    chain += "type C2000 string\ntype Part C0\n";
    let made = generate(&project(&[("api/v1/thing.go", &chain)]));
    assert!(made.crds[0].broken);
    let deep = format!("{}type Part {}string\n", KIND, "[]".repeat(20_000));
    assert!(generate(&project(&[("api/v1/thing.go", &deep)])).crds[0].broken);
    let loops = format!(
        "{KIND}type Part A\ntype A B\ntype B A\ntype X = Y\ntype Y = X\ntype S struct {{ *S; Z }}\ntype Z struct {{ S }}\n"
    );
    generate(&project(&[("api/v1/thing.go", &loops.replace("*Part", "X"))]));
    generate(&project(&[("api/v1/thing.go", &loops)]));
    generate(&project(&[("api/v1/thing.go", &loops.replace("*Part", "S"))]));
    // Brackets that are never closed, each of which could be told with its line.
    let open = format!("{KIND}{}", "type Part struct {\n".repeat(50_000));
    assert!(!messages(&generate(&project(&[("api/v1/thing.go", &open)]))).is_empty());
}

#[test]
fn truncations_and_mutations_never_panic() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/types/go");
    let disk = super::golden::Disk(root);
    let mut generator = Generator::new();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    let pieces = [
        "{", "}", "`", "\"", "//", "/*", "*/", "(", ")", "[", "]", "+", "=", "\n", "type ", "struct", "é",
        "\u{0}", ":", ";",
    ];
    for case in ["markers", "shapes", "flatten", "comments", "kinds"] {
        let path = format!("{case}/v1/types.go");
        let text = disk.read(&path).unwrap().to_string();
        for _ in 0..24 {
            let mut chars: Vec<char> = text.chars().collect();
            match random(3) {
                0 => chars.truncate(random(chars.len())),
                1 => {
                    let from = random(chars.len());
                    let to = (from + random(200)).min(chars.len());
                    chars.drain(from..to);
                }
                _ => {
                    for _ in 0..=random(6) {
                        let at = random(chars.len());
                        let piece = pieces[random(pieces.len())];
                        chars.splice(at..at, piece.chars());
                    }
                }
            }
            let mut files = project(&[(&path, &chars.into_iter().collect::<String>())]);
            files.0.insert("go.mod".to_owned(), disk.read("go.mod").unwrap());
            let path = "vendor/k8s.io/apimachinery/pkg/apis/meta/v1/types.go".to_owned();
            files.0.insert(path.clone(), disk.read(&path).unwrap());
            generator.generate(&files, &["./...".to_owned()], &Options::default());
        }
    }
}

/// Kept state never shows: after every edit the result is that of a fresh start.
#[test]
fn edits_one_after_the_other_give_what_a_fresh_start_gives() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/types/go");
    let disk = super::golden::Disk(root);
    let mut files = Memory::of(&[]);
    for path in [
        "go.mod",
        "shared/shared.go",
        "shapes/v1/types.go",
        "flatten/v1/types.go",
        "kinds/v1/types.go",
        "kinds/v1beta1/types.go",
        "vendor/k8s.io/apimachinery/pkg/apis/meta/v1/types.go",
    ] {
        files.0.insert(path.to_owned(), disk.read(path).unwrap());
    }
    let edits = [
        ("shared/shared.go", "type Port int32", "type Port int64"),
        ("shapes/v1/types.go", "Children []Tree", "Children []*Tree"),
        ("shared/shared.go", "// Host is its name.", "// Host is its name. +x"),
        ("flatten/v1/types.go", "MaxLength=10", "MaxLength=ten"),
        ("flatten/v1/types.go", "MaxLength=ten", "MaxLength=11"),
        ("kinds/v1beta1/types.go", "type Thing struct {", "type Thing struct"),
        ("kinds/v1beta1/types.go", "type Thing struct", "type Thing struct {"),
        ("shared/shared.go", "type Endpoint struct", "type Gone struct"),
        ("shared/shared.go", "type Gone struct", "type Endpoint struct"),
        ("vendor/k8s.io/apimachinery/pkg/apis/meta/v1/types.go", "Kind is what it is", "Kind is another"),
        ("shared/shared.go", "func (l *Level) MarshalText()", "func (l *Level) Text()"),
        ("kinds/v1/types.go", "groupName=kinds.example.com", "groupName=other.example.com"),
        ("go.mod", "module example.com/golden", "module example.com/golden // the same"),
    ];
    let mut generator = Generator::new();
    let (packages, options) = (["./...".to_owned()], Options::default());
    for (path, from, to) in edits {
        let text = files.0[path].replacen(from, to, 1);
        assert_ne!(*text, *files.0[path], "{path}: {from}");
        files.0.insert(path.to_owned(), text.into());
        let kept = generator.generate(&files, &packages, &options);
        let fresh = Generator::new().generate(&files, &packages, &options);
        assert_eq!(format!("{:?}", kept.diagnostics), format!("{:?}", fresh.diagnostics), "{from} -> {to}");
        assert_eq!(format!("{:?}", kept.crds), format!("{:?}", fresh.crds), "{from} -> {to}");
        assert_eq!(kept.read, fresh.read, "{from} -> {to}");
    }
}

/// Markers of a type that is a pointer: releases before v0.20 had them twice.
#[test]
fn markers_of_pointer_types_count_once_or_twice() {
    let rule = "// +kubebuilder:validation:XValidation:rule=\"self > 1\"\ntype Size *int32\n";
    let text = format!("{KIND}\n{rule}").replace("*Part", "Size");
    let files = project(&[("api/v1/thing.go", &text), ("api/v1/part.go", PART)]);
    for (release, times) in [("v0.18.0", 2), ("v0.20.0", 1), ("v0.21.0", 1)] {
        let options = Options { profile: Profile::parse(release), ..Options::default() };
        let made = Generator::new().generate(&files, &["./...".to_owned()], &options);
        let part = &spec(&made)["part"];
        assert_eq!(
            part["x-kubernetes-validations"].as_array().map(Vec::len),
            Some(times),
            "{release}: {part}"
        );
        assert_eq!(part["format"], "int32", "{release}");
    }
}

#[test]
fn bytes_that_are_no_text_have_a_place() {
    let broken = [KIND.as_bytes(), b"// caf\xe9\n"].concat();
    let text = source(&broken);
    assert_eq!(text.len(), broken.len());
    let made = generate(&project(&[("api/v1/thing.go", &text), ("api/v1/part.go", PART)]));
    let error = made.diagnostics.iter().find(|found| found.message.contains("not UTF-8")).unwrap();
    let place = error.place.as_ref().unwrap();
    assert_eq!((place.line, place.column), (KIND.matches('\n').count() as u32 + 1, 7));
    assert!(made.crds.iter().all(|crd| crd.broken));
}

/// Function bodies and values of variables may be newer than the grammar, or half typed: no type depends on
/// them.
#[test]
fn code_beside_a_type_never_costs_its_crd() {
    let kind = "// +groupName=a.example.com\npackage v1\n\nimport metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n{}\n\
                // A is a kind.\n// +kubebuilder:object:root=true\ntype A struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\t\
                metav1.ObjectMeta `json:\"metadata,omitempty\"`\n\tSpec B `json:\"spec\"`\n}\n\n{}\n// B is its spec.\ntype B struct {\n\
                \t// C is a field.\n\tC string `json:\"c\"`\n}\n\n{}";
    let made = |code: &str| {
        let text = kind.replace("{}", code);
        let files = Memory::of(&[("go.mod", "module example.com/a\n"), ("api/v1/types.go", &text)]);
        Generator::new().generate(&files, &["./...".to_owned()], &Options::default())
    };
    let clean = made("");
    assert_eq!(clean.crds.len(), 1);
    for code in [
        "var five = new(int64(5))\n",
        "var (\n\tfive = new(int64(5))\n\tsix = map[string]*int{\"a\": new(6)}\n)\n",
        "var seven =\n\tnew(func() int { return 7 }())\n",
        "func f() *int64 { return new(int64(5)) }\n",
        "func f() {\n\tx := new(f(1, new(2)))\n\tfor range 10 {\n\t}\n}\n",
        "func f() {\n\tif x {\n}\n",
        "func f() {\n\tx := \"open\n}\n",
        "func (r *R) f(a interface{ B() }) struct{ C int } {\n\t@@@ !! new(3)\n}\n",
    ] {
        let made = made(code);
        let errors: Vec<_> = made
            .diagnostics
            .iter()
            .filter(|one| one.severity == crate::diagnostic::Severity::Error)
            .collect();
        assert!(errors.is_empty(), "{code}: {errors:?}");
        assert_eq!(made.crds.len(), 1, "{code}");
        assert_eq!(made.crds[0].object, clean.crds[0].object, "{code}");
    }
}

#[test]
fn a_kind_may_embed_its_metadata_through_a_dot_import() {
    let made = |import: &str, qualifier: &str, more: &str| {
        let text = format!(
            "// +groupName=a.example.com\npackage v1\n\nimport {import} \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n\
             // A is a kind.\n// +kubebuilder:object:root=true\ntype A struct {{\n\t\
             {qualifier}TypeMeta `json:\",inline\"`\n\t\
             {qualifier}ObjectMeta `json:\"metadata,omitempty\"`\n\tSpec B `json:\"spec\"`\n}}\n\n\
             // B is its spec.\ntype B struct {{\n\t// C is a field.\n\tC string `json:\"c\"`\n}}\n{more}"
        );
        let files = Memory::of(&[("go.mod", "module example.com/a\n"), ("api/v1/types.go", &text)]);
        Generator::new().generate(&files, &["./...".to_owned()], &Options::default())
    };
    let (dotted, qualified) = (made(".", "", ""), made("metav1", "metav1.", ""));
    assert_eq!((dotted.crds.len(), qualified.crds.len()), (1, 1));
    assert_eq!(dotted.crds[0].object, qualified.crds[0].object);
    // A package's own types come first.
    let own = "\ntype TypeMeta struct{}\n\ntype ObjectMeta struct{}\n";
    assert!(made(".", "", own).crds.is_empty());
}
