//! Markers in Go files, and what controller-gen v0.21.0 wrote for the very same files.

use super::*;
use crate::go::{Files, Generator, Options, WebhookMarker};
use expect_test::expect;
use std::collections::BTreeMap;
use std::sync::Arc;

const V1: &str = include_str!("../../../tests/golden/types/webhook/v1.txt");
const V2: &str = include_str!("../../../tests/golden/types/webhook/v2.txt");
const WRITTEN: &str = include_str!("../../../tests/golden/types/webhook/manifests.yaml");

struct Project(BTreeMap<&'static str, String>);

impl Files for Project {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        Some(self.0.get(path)?.as_str().into())
    }

    fn list(&self, dir: &str) -> Vec<String> {
        let inside = self.0.keys().filter_map(|path| path.strip_prefix(dir)?.strip_prefix('/'));
        inside.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }

    fn module_cache(&self) -> Option<String> {
        None
    }
}

fn made_of(markers: &[WebhookMarker]) -> (Vec<Value>, Vec<Diagnostic>) {
    let all = markers.iter().map(|one| Marker {
        args: &one.args,
        place: &one.place,
        package: &one.package,
        of_configuration: one.of_configuration,
    });
    configurations(&all.collect::<Vec<_>>())
}

fn markers(v1: &str, v2: &str) -> (Vec<WebhookMarker>, Vec<Diagnostic>) {
    let files = [
        ("go.mod", "module example.com/shop\n\ngo 1.24\n".to_owned()),
        ("internal/webhook/v1/cart_webhook.go", v1.to_owned()),
        ("internal/webhook/v2/b.go", v2.to_owned()),
    ];
    let packages = ["internal/webhook/v1", "internal/webhook/v2"].map(str::to_owned);
    let generated = Generator::new().generate(&Project(files.into()), &packages, &Options::default());
    (generated.webhooks, generated.diagnostics)
}

#[test]
fn the_file_is_what_controller_gen_writes() {
    let (markers, odd) = markers(V1, V2);
    assert!(odd.is_empty(), "{odd:?}");
    let (made, wrong) = made_of(&markers);
    assert!(wrong.is_empty(), "{wrong:?}");
    let header = crate::emit::header("# Copyright YEAR Shop.\n", "2026");
    assert_eq!(file(&made, &header).unwrap().unwrap().text, WRITTEN);
}

#[test]
fn what_controller_gen_refuses_is_told_at_the_marker_and_nothing_is_made() {
    for (from, to, said) in [
        ("sideEffects=None", "sideEffects=Some", "sideEffects has to be None or NoneOnDryRun"),
        ("path=/v,", "path=/v,url=\"https://a.b/c\",", "path and url exclude each other"),
        ("path=/v,", "", "path, or url, is missing"),
        ("name=a.kb.io", "name=a.kb.io,timeoutSeconds=31", "between 1 and 30"),
        ("name=a.kb.io", "name=a.kb.io,matchPolicy=nearly", "Exact or Equivalent"),
        ("name=a.kb.io", "name=a.kb.io,webhookVersions=v1beta1", "v1 is all"),
        ("admissionReviewVersions=v1", "admissionReviewVersions={}", "has to name a version"),
    ] {
        let changed = V2.replace(from, to);
        assert_ne!(changed, V2, "{from}");
        let (markers, odd) = markers(V1, &changed);
        assert!(odd.is_empty(), "{odd:?}");
        let (made, wrong) = made_of(&markers);
        assert!(made.is_empty() && wrong.len() == 1, "{to}: {wrong:?}");
        assert!(wrong[0].message.contains(said), "{to}: {}", wrong[0].message);
        let place = wrong[0].place.as_ref().unwrap();
        assert_eq!((place.file.as_str(), place.line), ("internal/webhook/v2/b.go", 4));
    }
    // Arguments that nobody knows are told where those of all markers are.
    let (_, odd) = markers(V1, &V2.replace("sideEffects=None", "sideEffect=None"));
    assert!(odd.iter().any(|one| one.message.contains("unknown argument \"sideEffect\"")), "{odd:?}");
}

#[test]
fn one_package_names_a_configuration_once() {
    let twice = V2.replace(
        "// Package v2 has more.",
        "// +kubebuilder:webhookconfiguration:mutating=false,name=a\n// +kubebuilder:webhookconfiguration:mutating=false,name=b",
    );
    let (markers, _) = markers(V1, &twice);
    let (made, wrong) = made_of(&markers);
    assert!(made.is_empty() && wrong.len() == 1, "{wrong:?}");
    expect!["a second validating +kubebuilder:webhookconfiguration in one package; keep one of them"]
        .assert_eq(&wrong[0].message);
    assert_eq!(configurations(&[]), (Vec::new(), Vec::new()));
}
