//! A draft as the generators of CRDs, copy methods and roles read it: planned files above present ones. What
//! they need of Kubernetes' packages comes from opdev's own facts, so that nothing has to be downloaded
//! before a project is there.

use super::draft::Draft;
use opdev_types::go::{Files, Options, Profile};
use opdev_types::pin::{self, Inputs, Source};
use std::sync::Arc;

/// How the project has its CRDs made: with the release of controller-gen and the flags that its Makefile
/// names.
pub(super) fn options(draft: &Draft<'_>) -> Options {
    let (makefile, go_mod) = (draft.read("Makefile"), draft.read("go.mod"));
    let makefile = makefile.as_deref().map(|text| Source { path: "Makefile", text });
    let go_mod = go_mod.as_deref().map(|text| Source { path: "go.mod", text });
    let inputs = Inputs { makefiles: makefile.as_slice(), go_mod, ..Inputs::default() };
    let settings = pin::settings(&inputs);
    let flags = settings.invocations.into_iter().find_map(|call| call.crd).unwrap_or_default();
    Options {
        profile: settings.version.map(|version| Profile::parse(&version.text)).unwrap_or_default(),
        max_desc_len: flags.max_description,
        allow_dangerous_types: flags.allow_dangerous_types,
        ignore_unexported_fields: flags.ignore_unexported_fields,
        generate_embedded_object_meta: flags.generate_embedded_object_meta,
        omit_tool_version: flags.omit_tool_version,
        exact: false,
    }
}

/// The files of a draft, for CRDs and roles.
pub(super) struct DraftFiles<'a, 'b>(pub(super) &'a Draft<'b>);

impl Files for DraftFiles<'_, '_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.0.read(path.trim_start_matches("./")).map(Arc::from)
    }

    fn list(&self, dir: &str) -> Vec<String> {
        self.0.list(dir.trim_start_matches("./").trim_matches('/').trim_end_matches('.'))
    }

    fn module_cache(&self) -> Option<String> {
        None
    }
}

/// The folder in which the facts stand, as Go's module cache has them. No project has such a folder.
const FACTS: &str = "/opdev/facts";
const META: &str = include_str!("files/go/meta.go.in");

/// The files of a draft, for copy methods: with those of Kubernetes' types that scaffolded types name.
pub(super) struct DraftFilesToCopy<'a, 'b>(pub(super) DraftFiles<'a, 'b>);

/// A path below the facts, without the version of its module.
fn in_facts(path: &str) -> Option<String> {
    let (module, rest) = path.strip_prefix(FACTS)?.split_once('@')?;
    let (_version, inside) = rest.split_once('/')?;
    Some(format!("{}/{inside}", module.trim_start_matches('/')))
}

impl Files for DraftFilesToCopy<'_, '_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        match in_facts(path) {
            Some(inside) => {
                (inside == "k8s.io/apimachinery/pkg/apis/meta/v1/meta.go").then(|| Arc::from(META))
            }
            None if path.starts_with(FACTS) => None,
            None => self.0.read(path),
        }
    }

    fn list(&self, dir: &str) -> Vec<String> {
        match in_facts(dir) {
            Some(inside) if inside == "k8s.io/apimachinery/pkg/apis/meta/v1" => vec!["meta.go".to_owned()],
            Some(_) => Vec::new(),
            None if dir.starts_with(FACTS) => Vec::new(),
            None => self.0.list(dir),
        }
    }

    fn module_cache(&self) -> Option<String> {
        Some(FACTS.to_owned())
    }
}
