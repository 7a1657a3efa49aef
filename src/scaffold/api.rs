//! A new API of a project: its entry in `PROJECT`, CRD, sample, roles, and what reconciles it.

use super::draft::{Draft, ProjectFiles};
use super::markers::{self, List};
use super::options::{ApiOptions, GO_LAYOUT, Layout, Reconciler, fill};
use super::project_file::{self, NewResource, ProjectFile, Resource, qualified};
use super::{chart, dockerfile, names, typed};
use anyhow::{Context as _, Result, bail};
use opdev_object::meta::Gvk;
use opdev_types::plural;

/// The kind that is added, with all its names.
#[derive(Clone, Debug)]
pub(super) struct NewApi {
    pub(super) group: String,
    pub(super) gvk: Gvk,
    pub(super) plural: String,
    pub(super) namespaced: bool,
    pub(super) project: ProjectFile,
}

impl NewApi {
    /// Returns true if the project is a program in Go, which has to know its types.
    pub(super) fn is_go(&self) -> bool {
        self.project.layout.iter().any(|layout| layout == GO_LAYOUT)
    }

    /// Returns true if the project has the layout of types without a Go program.
    pub(super) fn is_typed(&self) -> bool {
        self.project.layout.iter().any(|layout| layout == Layout::Typed.plugin())
    }

    pub(super) fn lower(&self) -> String {
        self.gvk.kind.to_lowercase()
    }

    /// Returns true if the project has the kind at another version.
    pub(super) fn has_other_version(&self) -> bool {
        let other = |one: &Resource| {
            one.group == self.group && one.kind == self.gvk.kind && one.version != self.gvk.version
        };
        self.project.resources.iter().any(other)
    }

    /// Fills the placeholders of a text that is about this kind.
    pub(super) fn fill(&self, text: &str) -> String {
        fill(
            text,
            &[
                ("PROJECT", &self.project.project_name),
                ("GROUP", &self.gvk.group),
                ("VERSION", &self.gvk.version),
                ("KIND", &self.gvk.kind),
                ("LOWER", &self.lower()),
                ("PLURAL", &self.plural),
                ("SCOPE", if self.namespaced { "" } else { ",scope=Cluster" }),
            ],
        )
    }
}

/// Plans the files of a new API.
///
/// # Errors
/// A name that Kubernetes does not take, an API that exists, a chart that does not load.
pub fn create_api(options: &ApiOptions, draft: &mut Draft<'_>) -> Result<()> {
    let text = draft
        .read("PROJECT")
        .context("no PROJECT file here: `opdev init` makes a project; --project DIR names its folder")?;
    let (project, unknown) = project_file::read(&text)?;
    for warning in unknown {
        draft.warn(warning);
    }
    let api = named(options, project)?;
    check_room(&api, options)?;
    let types = match &options.reconciler {
        Reconciler::Chart(_) => String::new(),
        Reconciler::TypeScript | Reconciler::Templates | Reconciler::Go | Reconciler::Nothing => {
            typed::package(&api)
        }
    };

    let regular = plural::regular(&api.gvk.kind);
    let resource = NewResource {
        group: &api.group,
        domain: &api.project.domain,
        version: &api.gvk.version,
        kind: &api.gvk.kind,
        plural: (api.plural != regular).then_some(api.plural.as_str()),
        namespaced: api.namespaced,
        path: &types,
        controller: matches!(options.reconciler, Reconciler::Go),
    };
    draft.update("PROJECT", project_file::with_resource(&text, &api.project, &resource));
    match &options.reconciler {
        Reconciler::Chart(source) => {
            chart::add(&api, source.as_deref(), options.crd_schema, draft)?;
        }
        Reconciler::TypeScript => typed::add(&api, typed::Body::TypeScript, &options.year, draft)?,
        Reconciler::Templates => typed::add(&api, typed::Body::Templates, &options.year, draft)?,
        Reconciler::Go => typed::add(&api, typed::Body::Go, &options.year, draft)?,
        Reconciler::Nothing => typed::add(&api, typed::Body::Nothing, &options.year, draft)?,
    }
    roles_for_people(&api, draft);
    if api.is_go() {
        beside_the_program(&api, &options.reconciler, draft);
    } else {
        dockerfile::pack(&api.gvk.kind, draft);
    }
    Ok(())
}

/// Says what the program in Go, and its Makefile, make of a kind that something else reconciles.
fn beside_the_program(api: &NewApi, reconciler: &Reconciler, draft: &mut Draft<'_>) {
    let what = match reconciler {
        Reconciler::Chart(_) => "the chart",
        Reconciler::TypeScript => "the script",
        Reconciler::Templates => "the templates",
        Reconciler::Go | Reconciler::Nothing => return,
    };
    draft.warn(format!(
        "the program of cmd/main.go does not reconcile {}: `opdev run` does it with {what}, but the image that the Dockerfile \
         builds has the program only",
        api.gvk.kind
    ));
    if matches!(reconciler, Reconciler::Chart(_)) {
        draft.warn(
            "`make manifests` writes config/rbac/role.yaml from the +kubebuilder:rbac markers: add markers for the chart's rules, \
             or they are gone then"
                .to_owned(),
        );
    }
}

/// Returns true if the project's kinds are reconciled by a Go program in kubebuilder's layout.
pub fn is_go_project(present: &dyn ProjectFiles) -> bool {
    let text = Draft::new(present, false).read("PROJECT");
    let project = text.and_then(|text| project_file::read(&text).ok());
    project.is_some_and(|(project, _)| project.layout.iter().any(|layout| layout == GO_LAYOUT))
}

/// The names of the API, with defaults, checked.
fn named(options: &ApiOptions, project: ProjectFile) -> Result<NewApi> {
    let mut group = options.group.clone();
    let mut version = options.version.clone();
    let mut kind = options.kind.clone();
    match &options.reconciler {
        Reconciler::Chart(Some(source)) => {
            let default = |value: &mut String, default: String| {
                if value.is_empty() {
                    *value = default;
                }
            };
            // A group that the project would refuse is no default.
            let only = project.resources.first().filter(|_| !project.multigroup);
            let usual = only.map_or("charts", |one| one.group.as_str());
            default(&mut group, usual.to_owned());
            default(&mut version, "v1alpha1".to_owned());
            default(&mut kind, names::camel_case(source.chart.name()));
        }
        Reconciler::Chart(None) if kind.is_empty() => {
            bail!("either --kind or --helm-chart need to be provided");
        }
        Reconciler::Chart(None)
        | Reconciler::TypeScript
        | Reconciler::Templates
        | Reconciler::Go
        | Reconciler::Nothing => {
            if kind.is_empty() {
                bail!("kind cannot be empty; give one such as --kind PodSet");
            }
        }
    }
    let gvk = Gvk::new(qualified(&group, &project.domain), &version, &kind);
    names::check_kind(&gvk)?;
    // It stands in many files, and somebody else may have written PROJECT.
    names::check_project(&project.project_name, "It is the projectName in PROJECT: change it there")?;
    let plural = match options.plural.as_str() {
        "" => plural::regular(&kind),
        given => given.to_owned(),
    };
    let wrong = opdev_object::names::dns1035_label(&plural);
    if !wrong.is_empty() {
        bail!("plural {plural:?} is invalid: {}", wrong.join("; "));
    }
    Ok(NewApi { group, gvk, plural, namespaced: options.namespaced, project })
}

/// Checks that the project may take the API.
fn check_room(api: &NewApi, options: &ApiOptions) -> Result<()> {
    if matches!(options.reconciler, Reconciler::Go) && !api.is_go() {
        bail!(
            "PROJECT has the layout {}: only in a project of the layout {} can a Go program reconcile a kind; `opdev init --go` \
             makes one",
            api.project.layout.join(", "),
            GO_LAYOUT
        );
    }
    let listed = &api.project.resources;
    let same = |group: &str, kind: &str| group == api.group && kind == api.gvk.kind;
    if matches!(options.reconciler, Reconciler::Go) && api.has_other_version() {
        bail!(
            "{} has a controller for another version already, which goes on reconciling it: --reconciler none adds the types of \
             this version alone",
            api.gvk.kind
        );
    }
    if !options.force
        && listed.iter().any(|one| same(&one.group, &one.kind) && one.version == api.gvk.version)
    {
        bail!("the API resource already exists; --force writes its files anew");
    }
    if matches!(options.reconciler, Reconciler::Chart(_)) && api.has_other_version() {
        bail!(
            "{} has another version in PROJECT already, and a chart reconciles one version of a kind: change the version in \
             watches.yaml and the CRD by hand",
            api.gvk.kind
        );
    }
    if !api.project.multigroup && !listed.is_empty() && listed.iter().all(|one| one.group != api.group) {
        bail!(
            "multiple groups are not allowed by default, to enable multi-group set 'multigroup: true' in your PROJECT file"
        );
    }
    Ok(())
}

/// The roles that administrators bind to people.
fn roles_for_people(api: &NewApi, draft: &mut Draft<'_>) {
    let prefix = if api.project.multigroup { format!("{}_{}", api.group, api.lower()) } else { api.lower() };
    for (role, text) in [
        ("admin", include_str!("files/config/rbac/kind_admin_role.yaml")),
        ("editor", include_str!("files/config/rbac/kind_editor_role.yaml")),
        ("viewer", include_str!("files/config/rbac/kind_viewer_role.yaml")),
    ] {
        let name = format!("{prefix}_{role}_role.yaml");
        draft.create(format!("config/rbac/{name}"), api.fill(text));
        // Upstream's file has no marker.
        let path = "config/rbac/kustomization.yaml";
        if let Some(text) = draft.read(path) {
            draft.update(path, markers::append(&text, List::Key("resources"), &format!("- {name}\n")));
        }
    }
}

/// A file with a list that grows with each API.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listing {
    path: &'static str,
    marker: &'static str,
    list: List,
}

pub(super) const WATCHES: Listing = Listing { path: "watches.yaml", marker: "watch", list: List::Whole };
pub(super) const CRDS: Listing = Listing {
    path: "config/crd/kustomization.yaml",
    marker: "crdkustomizeresource",
    list: List::Key("resources"),
};
pub(super) const SAMPLES: Listing = Listing {
    path: "config/samples/kustomization.yaml",
    marker: "manifestskustomizesamples",
    list: List::Key("resources"),
};
pub(super) const RULES: Listing =
    Listing { path: "config/rbac/role.yaml", marker: "rules", list: List::Key("rules") };

/// Inserts an entry at the marker of a file; without the marker it goes to the end of the list, with a word.
pub(super) fn insert(listing: Listing, entry: &str, draft: &mut Draft<'_>) {
    let Listing { path, marker, list } = listing;
    let Some(text) = draft.read(path) else {
        draft.warn(format!("{path} is not there; add to it by hand:\n{}", entry.trim_end()));
        return;
    };
    let text = markers::insert(&text, marker, entry).unwrap_or_else(|| {
        draft.warn(format!(
            "{path} has no line `# +kubebuilder:scaffold:{marker}`; the entry stands at the end of the list"
        ));
        markers::append(&text, list, entry)
    });
    draft.update(path, text);
}
