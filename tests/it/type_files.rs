//! `opdev crd`, `opdev rbac` and `opdev deepcopy` from the outside: a project with Go types in, files, diffs
//! and exit codes out. No Go toolchain takes part; the little API machinery that the types import lies in a
//! module cache of the test's own.

use crate::masked::masked;
use expect_test::expect;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const TYPES: &str = r#"// Package v1 holds the API of the park.
// +groupName=fun.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ParkSpec says what the park should be.
type ParkSpec struct {
	// Rides is how many rides there are.
	// +kubebuilder:validation:Minimum=0
	Rides int32 `json:"rides"`
}

// +kubebuilder:object:root=true

// Park is a park.
type Park struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ParkSpec `json:"spec,omitempty"`
}
"#;

const MAKEFILE: &str = "CONTROLLER_TOOLS_VERSION ?= v0.18.0\n\nmanifests: controller-gen\n\t\
    $(CONTROLLER_GEN) rbac:roleName=keeper crd:headerFile=hack/head.txt,year=2031 paths=\"./...\" \
    output:crd:artifacts:config=deploy/crds\n";

const CONTROLLER: &str = "package controller\n\n\
    // +kubebuilder:rbac:groups=fun.example.com,resources=parks,verbs=get;list;watch\n\
    // +kubebuilder:rbac:groups=fun.example.com,resources=parks/status,verbs=watch;get;list\n\
    // +kubebuilder:rbac:groups=core,resources=pods,namespace=park,verbs=*;get\n\n\
    func Setup() {}\n";

const MACHINERY: &str = "package v1\n\ntype TypeMeta struct {\n\tKind string `json:\"kind,omitempty\"`\n\
    \tAPIVersion string `json:\"apiVersion,omitempty\"`\n}\n\ntype ObjectMeta struct {\n\tName string `json:\"name,omitempty\"`\n}\n";

fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("PROJECT", "version: \"3\"\n"),
        ("go.mod", "module example.com/park\n\nrequire k8s.io/apimachinery v0.34.0\n"),
        ("Makefile", MAKEFILE),
        ("hack/head.txt", "# Copyright YEAR the park\n"),
        ("api/v1/park_types.go", TYPES),
        ("internal/controller/park.go", CONTROLLER),
        (".cache/k8s.io/apimachinery@v0.34.0/pkg/apis/meta/v1/types.go", MACHINERY),
    ] {
        write(folder.path(), path, text);
    }
    folder
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn opdev(project: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_opdev"))
        .args(arguments)
        .current_dir(project.path().join("api"))
        .env("GOMODCACHE", project.path().join(".cache"))
        .output()
        .unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn types_are_written_compared_and_written_again() {
    let project = project();
    let (code, out, said) = opdev(&project, &["crd", "--check"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        out.starts_with("--- /dev/null\n+++ b/deploy/crds/fun.example.com_parks.yaml\n@@ -0,0 +1,"),
        "{out}"
    );
    let (code, out, said) = opdev(&project, &["crd"]);
    assert_eq!(
        (code, out.as_str(), said.as_str()),
        (Some(0), "", "wrote deploy/crds/fun.example.com_parks.yaml\n")
    );
    let written = fs::read_to_string(project.path().join("deploy/crds/fun.example.com_parks.yaml")).unwrap();
    assert!(
        written.starts_with(
            "# Copyright 2031 the park\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  \
             annotations:\n    controller-gen.kubebuilder.io/version: v0.18.0\n  name: parks.fun.example.com\n"
        ),
        "{written}"
    );
    assert_eq!(opdev(&project, &["crd", "--check"]), (Some(0), String::new(), String::new()));
    assert_eq!(opdev(&project, &["crd"]), (Some(0), String::new(), String::new()));

    write(project.path(), "api/v1/park_types.go", &TYPES.replace("Minimum=0", "Minimum=1"));
    let (code, out, said) = opdev(&project, &["crd", "--check"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("\n-                minimum: 0\n+                minimum: 1\n"), "{out}");
    assert_eq!(
        said,
        "1 file differs from what is committed; run the command without --check to write \
         (controller-gen v0.18.0 by CONTROLLER_TOOLS_VERSION in Makefile:1)\n"
    );
    let (code, out, _) = opdev(&project, &["crd", "./v1", "-o", "-", "--version-profile", "v0.21.0"]);
    // Patterns of the command line start at the project's root, as those of the Makefile do.
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let (code, out, _) = opdev(&project, &["crd", "./api/v1", "-o", "-", "--version-profile", "v0.21.0"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("kubebuilder.io/version: v0.21.0\n") && out.contains("minimum: 1\n"), "{out}");
}

#[test]
fn what_is_wrong_is_shown_with_its_line_and_nothing_is_overwritten() {
    let project = project();
    opdev(&project, &["crd"]);
    let path = project.path().join("deploy/crds/fun.example.com_parks.yaml");
    let before = fs::read_to_string(&path).unwrap();
    write(
        project.path(),
        "api/v1/park_types.go",
        &TYPES.replace("Rides int32 `json:\"rides\"`", "Rides float64 `json:\"rides\"`"),
    );
    let (code, _, said) = opdev(&project, &["crd"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("api/v1/park_types.go:11:") && said.contains(": error: "), "{said}");
    assert!(said.contains("11 |   Rides float64"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

/// A variable that only a shell knows is empty here.
#[test]
fn nothing_is_written_to_a_folder_of_the_machine() {
    let project = project();
    let makefile = MAKEFILE.replace("config=deploy/crds", "config=$(shell tput cols)/opdev-crds");
    write(
        project.path(),
        "Makefile",
        &format!("{makefile}\ngenerate:\n\tcontroller-gen object output:dir=/opdev-copies\n"),
    );
    for (word, folder) in [("crd", "/opdev-crds"), ("deepcopy", "/opdev-copies")] {
        let (code, out, said) = opdev(&project, &[word]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{said}");
        assert!(said.contains(folder) && said.contains("leads out of the project"), "{said}");
        assert!(said.contains("-o FOLDER names another place"), "{said}");
        assert!(!Path::new(folder).exists());
    }
    let (code, _, said) = opdev(&project, &["crd", "-o", "here"]);
    assert_eq!(code, Some(0), "{said}");
    write(project.path(), "Makefile", "check:\n\tcontroller-gen crd paths=./... output:none\n");
    let (code, _, said) = opdev(&project, &["crd"]);
    assert_eq!(code, Some(1));
    expect![[r#"
        error: Makefile:2 calls controller-gen with output:none, so that no CRD is written; name a folder with -o DIR
    "#]]
    .assert_eq(&said);
}

#[test]
fn markers_become_roles() {
    let project = project();
    let (code, out, said) = opdev(&project, &["rbac", "-o", "-"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(
        out,
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: keeper\nrules:\n\
         - apiGroups:\n  - fun.example.com\n  resources:\n  - parks\n  - parks/status\n  verbs:\n  - get\n  - list\n  - watch\n\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: keeper\n  namespace: park\nrules:\n\
         - apiGroups:\n  - \"\"\n  resources:\n  - pods\n  verbs:\n  - '*'\n"
    );
    assert_eq!(opdev(&project, &["rbac", "--check"]).0, Some(1));
    let (code, _, said) = opdev(&project, &["rbac"]);
    assert_eq!((code, said.as_str()), (Some(0), "wrote config/rbac/role.yaml\n"));
    assert_eq!(opdev(&project, &["rbac", "--check"]).0, Some(0));
}

#[test]
fn a_marker_that_cannot_be_read_leaves_the_role_as_it_was() {
    let project = project();
    opdev(&project, &["rbac"]);
    let role = project.path().join("config/rbac/role.yaml");
    let before = fs::read_to_string(&role).unwrap();
    let marker =
        "package main\n\n// +kubebuilder:rbac:groups=apps,resources=deployments\n\nfunc other() {}\n";
    write(project.path(), "other/other.go", marker);
    let (code, _, said) = opdev(&project, &["rbac"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("other/other.go:3:") && said.contains("missing argument \"verbs\""), "{said}");
    assert!(said.contains("role.yaml is left as it is"), "{said}");
    assert_eq!(fs::read_to_string(&role).unwrap(), before);
}

#[test]
fn charts_need_roles_too() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "");
    let output = Command::new(env!("CARGO_BIN_EXE_opdev"))
        .args(["rbac", "--from-charts", "-o", "-", "--project", root])
        .output()
        .unwrap();
    let (out, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        out.contains(
            "  - memcacheds\n  - memcacheds/finalizers\n  - memcacheds/status\n  verbs:\n  - create\n"
        ),
        "{out}"
    );
    assert!(out.contains("- apiGroups:\n  - apps\n  resources:\n  - deployments\n"), "{out}");
}

#[test]
fn a_folder_without_types_says_what_a_kind_is() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "go.mod", "module example.com/none\n");
    let root = folder.path().to_str().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_opdev")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(&["crd", "--project", root]);
    assert_eq!(code, Some(1), "{said}");
    expect![[r#"
        error: no kinds in ./... below TMP: a kind is a struct that embeds metav1.TypeMeta and metav1.ObjectMeta
    "#]]
    .assert_eq(&masked(&said));
    let (code, said) = run(&["rbac", "--project", root]);
    assert_eq!(code, Some(1), "{said}");
    expect![[r#"
        error: no +kubebuilder:rbac markers below TMP
    "#]]
    .assert_eq(&masked(&said));
    let (code, said) = run(&["crd", "--project", "/no/such"]);
    assert_eq!(code, Some(1), "{said}");
    expect![[r#"
        error: the project folder /no/such cannot be opened: No such file or directory (os error 2)
    "#]]
    .assert_eq(&said);
}

/// Copy methods are written before a build; a type that cannot be copied keeps the file that was there.
#[test]
fn copy_methods_are_written_beside_the_types() {
    let project = project();
    let path = project.path().join("api/v1/zz_generated.deepcopy.go");
    write(project.path(), "hack/go.txt", "/*\nCopyright YEAR the park.\n*/\n");
    let generate =
        "\ngenerate:\n\t$(CONTROLLER_GEN) object:headerFile=hack/go.txt,year=2031 paths=\"./...\"\n";
    write(project.path(), "Makefile", &format!("{MAKEFILE}{generate}"));
    let (code, out, said) = opdev(&project, &["deepcopy", "--check"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(out.starts_with("--- /dev/null\n+++ b/api/v1/zz_generated.deepcopy.go\n@@ -0,0 +1,"), "{out}");
    let written = "wrote api/v1/zz_generated.deepcopy.go\n".to_owned();
    // The types ask for nothing but the methods of the kind itself.
    assert_eq!(opdev(&project, &["deepcopy"]), (Some(0), String::new(), written.clone()));
    let text = fs::read_to_string(&path).unwrap();
    let begins = "//go:build !ignore_autogenerated\n\n/*\nCopyright 2031 the park.\n*/\n\n// Code generated by \
                  controller-gen. DO NOT EDIT.\n\npackage v1\n\nimport (\n\truntime \"k8s.io/apimachinery/pkg/runtime\"\n)\n";
    assert!(text.starts_with(begins), "{text}");
    assert!(text.contains("func (in *Park) DeepCopyObject() runtime.Object {"), "{text}");
    assert!(!text.contains("ParkSpec) DeepCopy"), "{text}");
    assert_eq!(opdev(&project, &["deepcopy", "--check"]), (Some(0), String::new(), String::new()));

    let all = TYPES.replace("// +groupName", "// +kubebuilder:object:generate=true\n// +groupName");
    write(project.path(), "api/v1/park_types.go", &all);
    assert_eq!(opdev(&project, &["deepcopy"]), (Some(0), String::new(), written));
    let good = fs::read_to_string(&path).unwrap();
    assert!(good.contains("func (in *ParkSpec) DeepCopyInto(out *ParkSpec) {\n\t*out = *in\n}\n"), "{good}");

    write(project.path(), "api/v1/park_types.go", &all.replace("Rides int32", "Rides any"));
    let (code, _, said) = opdev(&project, &["deepcopy"]);
    assert_eq!(code, Some(1));
    expect![[r#"
        api/v1/park_types.go:12:2: error: an interface cannot be copied
          11 |   // +kubebuilder:validation:Minimum=0
          12 |   Rides any `json:"rides"`
             |   ^
          13 | }
          Use a type that JSON has, write DeepCopyInto of the type by hand, or mark it +kubebuilder:object:generate=false.
        api/v1/zz_generated.deepcopy.go is left as it is until the errors above are gone
    "#]]
    .assert_eq(&said);
    assert_eq!(fs::read_to_string(&path).unwrap(), good);
}
