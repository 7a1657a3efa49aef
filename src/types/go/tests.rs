//! Tests from Go text to CRDs, on files in memory.

use super::*;
use std::collections::BTreeSet;

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
