//! A small typed operator beside the demo's: a Go type with a Gadget and a script that makes two ConfigMaps
//! of it.

use crate::inner_loop::Opdev;
use opdev_event::{ObjectTask, Reconcile};
use std::fs;
use std::path::Path;

pub(crate) const TYPES: &str = "config/types/v1alpha1/gadget_types.go";
pub(crate) const GADGET: &str = r#"// +groupName=toys.example.com
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GadgetSpec says what a gadget is to be.
type GadgetSpec struct {
	// Size says how many.
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`

	// Tier says how good.
	// +kubebuilder:validation:Enum=gold;silver;iron
	// +optional
	Tier string `json:"tier,omitempty"`
}

// GadgetStatus says what a gadget is.
type GadgetStatus struct {
	// +optional
	Seen int32 `json:"seen,omitempty"`
}

// Gadget is a toy.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GadgetSpec   `json:"spec,omitempty"`
	Status GadgetStatus `json:"status,omitempty"`
}
"#;

pub(crate) const RECONCILER: &str = "config/reconcilers/gadget.ts";
const SCRIPT: &str = r#"export const owns = ["v1/ConfigMap"];

export function reconcile(self: any) {
  const map = (name: string, n: number) => ({
    apiVersion: "v1", kind: "ConfigMap", metadata: { name: `${self.metadata.name}-${name}` }, data: { n: String(n) },
  });
  return { children: [map("one", self.spec.size), map("two", 2)], status: { seen: self.spec.size } };
}
"#;

pub(crate) const SAMPLE: &str = "samples/gadget.yaml";

/// Puts its files into a project.
pub(crate) fn gadgets(root: &Path) {
    for (path, text) in [
        (TYPES, GADGET.to_owned()),
        (RECONCILER, SCRIPT.to_owned()),
        (
            SAMPLE,
            "apiVersion: toys.example.com/v1alpha1\nkind: Gadget\nmetadata: {name: top, namespace: default}\n\
             spec: {size: 3, tier: gold}\n"
                .to_owned(),
        ),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// With one Gadget that has been reconciled.
pub(crate) async fn start() -> Opdev {
    let mut opdev = Opdev::start_after(gadgets).await;
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: SAMPLE.to_owned() }).await;
    opdev
        .reconcile("the first pass", mark, |reconcile| is_gadget(reconcile) && reconcile.objects.len() == 2)
        .await;
    opdev
}

pub(crate) fn is_gadget(reconcile: &Reconcile) -> bool {
    reconcile.object.gvk.kind == "Gadget"
}
