//! The files of a new project: `PROJECT`, `Makefile`, `watches.yaml` and the folders of `config`.

use super::draft::Draft;
use super::options::{InitOptions, Layout, OPERATOR_SDK, fill};
use super::{go_project, names, project_file};
use anyhow::{Result, bail};

/// Path in the project → text with placeholders, for every layout.
pub(super) const CONFIG: [(&str, &str); 23] = [
    ("config/crd/kustomization.yaml", include_str!("files/config/crd/kustomization.yaml")),
    ("config/default/kustomization.yaml", include_str!("files/config/default/kustomization.yaml")),
    (
        "config/default/manager_metrics_patch.yaml",
        include_str!("files/config/default/manager_metrics_patch.yaml"),
    ),
    ("config/default/metrics_service.yaml", include_str!("files/config/default/metrics_service.yaml")),
    ("config/manager/kustomization.yaml", include_str!("files/config/manager/kustomization.yaml")),
    ("config/manager/manager.yaml", include_str!("files/config/manager/manager.yaml")),
    (
        "config/network-policy/allow-metrics-traffic.yaml",
        include_str!("files/config/network-policy/allow-metrics-traffic.yaml"),
    ),
    (
        "config/network-policy/kustomization.yaml",
        include_str!("files/config/network-policy/kustomization.yaml"),
    ),
    ("config/prometheus/kustomization.yaml", include_str!("files/config/prometheus/kustomization.yaml")),
    ("config/prometheus/monitor.yaml", include_str!("files/config/prometheus/monitor.yaml")),
    ("config/rbac/kustomization.yaml", include_str!("files/config/rbac/kustomization.yaml")),
    ("config/rbac/leader_election_role.yaml", include_str!("files/config/rbac/leader_election_role.yaml")),
    (
        "config/rbac/leader_election_role_binding.yaml",
        include_str!("files/config/rbac/leader_election_role_binding.yaml"),
    ),
    ("config/rbac/metrics_auth_role.yaml", include_str!("files/config/rbac/metrics_auth_role.yaml")),
    (
        "config/rbac/metrics_auth_role_binding.yaml",
        include_str!("files/config/rbac/metrics_auth_role_binding.yaml"),
    ),
    ("config/rbac/metrics_reader_role.yaml", include_str!("files/config/rbac/metrics_reader_role.yaml")),
    ("config/rbac/role_binding.yaml", include_str!("files/config/rbac/role_binding.yaml")),
    ("config/rbac/service_account.yaml", include_str!("files/config/rbac/service_account.yaml")),
    ("config/samples/kustomization.yaml", include_str!("files/config/samples/kustomization.yaml")),
    ("config/scorecard/bases/config.yaml", include_str!("files/config/scorecard/bases/config.yaml")),
    ("config/scorecard/kustomization.yaml", include_str!("files/config/scorecard/kustomization.yaml")),
    (
        "config/scorecard/patches/basic.config.yaml",
        include_str!("files/config/scorecard/patches/basic.config.yaml"),
    ),
    (
        "config/scorecard/patches/olm.config.yaml",
        include_str!("files/config/scorecard/patches/olm.config.yaml"),
    ),
];

/// Plans the files of a new project.
///
/// # Errors
/// A name that Kubernetes does not take, or a folder that is a project already.
pub fn init(options: &InitOptions, draft: &mut Draft<'_>) -> Result<()> {
    for file in ["PROJECT", "Makefile", "cmd/main.go"] {
        if draft.exists(file) {
            bail!(
                "{file} exists: this folder is a project already. `opdev create api` adds a kind to it; --project DIR \
                 names another folder"
            );
        }
    }
    names::check_domain(&options.domain)?;
    names::check_project(&options.project_name, "Choose another one with --project-name")?;
    let display = display_name(&options.project_name);
    let values = [
        ("PROJECT", options.project_name.as_str()),
        ("DOMAIN", options.domain.as_str()),
        ("DISPLAY", display.as_str()),
        ("SDK", OPERATOR_SDK),
    ];
    let module =
        if options.layout == Layout::Go { go_project::module(options, draft)? } else { String::new() };
    draft.create("PROJECT", project_file::new(options, &module));
    if options.layout == Layout::Go {
        go_project::init(options, &module, &values, draft);
    } else {
        draft.create_missing(".gitignore", include_str!("files/gitignore"));
        for (path, text) in CONFIG {
            draft.create(path, fill(text, &values));
        }
        draft.create("config/rbac/role.yaml", include_str!("files/config/rbac/role.yaml"));
    }
    draft.create("config/manifests/kustomization.yaml", {
        fill(include_str!("files/config/manifests/kustomization.yaml"), &values)
    });
    draft.create(
        format!("config/manifests/bases/{}.clusterserviceversion.yaml", options.project_name),
        fill(include_str!("files/config/manifests/bases/clusterserviceversion.yaml"), &values),
    );
    match options.layout {
        Layout::Chart => {
            draft.create("Makefile", fill(include_str!("files/chart/Makefile"), &values));
            draft.create("Dockerfile", fill(include_str!("files/chart/Dockerfile"), &values));
            draft.create("watches.yaml", include_str!("files/chart/watches.yaml"));
            draft.create_missing("helm-charts/.gitkeep", "");
        }
        Layout::Typed => {
            draft.create("Makefile", fill(include_str!("files/typed/Makefile"), &values));
            draft.create("Dockerfile", include_str!("files/typed/Dockerfile"));
        }
        Layout::Go => {}
    }
    Ok(())
}

/// Warns of files that are in the new project's folder and have no part in it: the folder may be the wrong
/// one. What the command was pointed at (`named`), hidden files, a README and a LICENSE are expected there;
/// what is in the way is told otherwise.
pub fn warn_of_others(named: &[String], draft: &mut Draft<'_>) {
    let is_expected = |name: &str| {
        let upper = name.to_uppercase();
        let of_any_folder = ["README", "LICENSE"].iter().any(|known| upper.starts_with(known));
        of_any_folder || name.starts_with('.') || named.iter().any(|one| one == name)
    };
    let mut others = draft.others();
    others.retain(|name| !is_expected(name));
    if others.is_empty() || !draft.conflicts().is_empty() {
        return;
    }
    let more = match others.len().saturating_sub(3) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    others.truncate(3);
    draft.warn(format!(
        "the project's folder holds other files, which stay as they are: {}{more}",
        others.join(", ")
    ));
}

/// `cache-operator` becomes `Cache Operator`.
fn display_name(project: &str) -> String {
    let words = project.split('-').filter(|word| !word.is_empty()).map(|word| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    });
    words.collect::<Vec<_>>().join(" ")
}
