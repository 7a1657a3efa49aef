//! A new operator in Go on controller-runtime, laid out as kubebuilder's plugin `go/v4` does it, which the
//! Operator SDK carries too: both go on with the project. The versions are those of kubebuilder 4.16, so that
//! its `go mod tidy` changes nothing. `go.sum` is written with the project: it builds at once, and Go checks
//! what it downloads.

use super::base;
use super::draft::Draft;
use super::options::{InitOptions, fill};
use anyhow::{Result, bail};

/// The release of controller-gen that the Makefile calls: that which kubebuilder pairs with
/// controller-runtime, and that of opdev's own generators where a project pins none.
const CONTROLLER_TOOLS: &str = "v0.22.0";
pub(super) const MAIN: &str = "cmd/main.go";
pub(super) const BOILERPLATE: &str = "hack/boilerplate.go.txt";
pub(super) const ROLE: &str = "config/rbac/role.yaml";
/// The role before the first marker.
pub(super) const EMPTY_ROLE: &str = include_str!("files/go/config/role.yaml");

/// Path in the project → text with placeholders, in place of those of charts or beside them.
const FILES: [(&str, &str); 11] = [
    ("Dockerfile", include_str!("files/go/Dockerfile.in")),
    ("Makefile", include_str!("files/go/Makefile.in")),
    (".dockerignore", include_str!("files/go/dockerignore")),
    ("go.sum", include_str!("files/go/go.sum.in")),
    (BOILERPLATE, include_str!("files/go/boilerplate.go.txt")),
    ("config/crd/kustomization.yaml", include_str!("files/go/config/crd_kustomization.yaml")),
    ("config/crd/kustomizeconfig.yaml", include_str!("files/go/config/kustomizeconfig.yaml")),
    ("config/default/kustomization.yaml", include_str!("files/go/config/default_kustomization.yaml")),
    ("config/default/manager_metrics_patch.yaml", include_str!("files/go/config/manager_metrics_patch.yaml")),
    ("config/manager/manager.yaml", include_str!("files/go/config/manager.yaml")),
    (ROLE, EMPTY_ROLE),
];

/// Checks that the Go module's name is one that Go takes.
fn check_module(module: &str) -> Result<()> {
    let part = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
        !part.is_empty() && part.chars().all(plain) && !part.starts_with('.') && !part.ends_with('.')
    };
    if !module.split('/').all(part) {
        bail!("the Go module {module:?} is invalid; give one such as --repo github.com/me/cache-operator");
    }
    Ok(())
}

/// The module of a `go.mod` that is as `go mod init` makes it: what stands in one with more is the user's.
fn empty_module(draft: &Draft<'_>) -> Option<String> {
    let text = draft.read("go.mod")?;
    let plain = |line: &str| {
        let line = line.trim();
        line.is_empty()
            || (!line.contains("//") && (line.starts_with("module ") || goes_with(line).unwrap_or(false)))
    };
    if !text.lines().all(plain) {
        return None;
    }
    let name = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
    Some(name.trim().trim_matches('"').to_owned())
}

/// Returns true if a line `go 1.25.0` asks for no newer Go than the project that is laid out.
fn goes_with(line: &str) -> Option<bool> {
    let number = |text: &str| {
        let mut parts = text.trim().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    };
    let own = include_str!("files/go/go.mod.in").lines().find_map(|line| line.strip_prefix("go "))?;
    Some(number(line.strip_prefix("go ")?) <= number(own))
}

/// The Go module of a new project: the one that was asked for, that of a `go.mod` without requirements, or a
/// name made of domain and project.
pub(super) fn module(options: &InitOptions, draft: &Draft<'_>) -> Result<String> {
    let module = match (options.repo.as_str(), empty_module(draft)) {
        ("", Some(found)) => found,
        ("", None) if options.domain.is_empty() => format!("example.com/{}", options.project_name),
        ("", None) => format!("{}/{}", options.domain, options.project_name),
        (given, _) => given.to_owned(),
    };
    check_module(&module)?;
    Ok(module)
}

/// Plans the files of a project in Go, those of `config` that are as for charts among them.
pub(super) fn init(options: &InitOptions, module: &str, values: &[(&str, &str)], draft: &mut Draft<'_>) {
    let leader = match options.domain.as_str() {
        "" => options.project_name.clone(),
        domain => format!("{}.{domain}", options.project_name),
    };
    let own = [("MODULE", module), ("LEADER", &leader), ("CONTROLLER_TOOLS", CONTROLLER_TOOLS)];
    let values = [values, &own].concat();
    for (path, text) in base::CONFIG {
        if FILES.iter().all(|(own, _)| *own != path) {
            draft.create(path, fill(text, &values));
        }
    }
    for (path, text) in FILES {
        draft.create(path, fill(text, &values));
    }
    let e2e = with_head(draft, &fill(include_str!("files/go/e2e_test.go"), &values));
    draft.create("test/e2e/e2e_test.go", format!("//go:build e2e\n\n{e2e}"));
    let utils = with_head(draft, &fill(include_str!("files/go/utils.go"), &values));
    draft.create("test/utils/utils.go", utils);
    draft.create(MAIN, with_head(draft, &fill(include_str!("files/go/main.go"), &values)));
    let go_mod = fill(include_str!("files/go/go.mod.in"), &values);
    if empty_module(draft).is_some_and(|found| found == module) {
        draft.update("go.mod", go_mod);
    } else {
        draft.create("go.mod", go_mod);
    }
    draft.create_missing("README.md", fill(include_str!("files/go/README.md"), &values));
    draft.create_missing(".gitignore", include_str!("files/go/gitignore"));
}

/// A Go text below the project's licence head.
pub(super) fn with_head(draft: &Draft<'_>, text: &str) -> String {
    match draft.read(BOILERPLATE).filter(|head| !head.trim().is_empty()) {
        Some(head) => format!("{}\n\n{text}", head.trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_names_that_go_takes() {
        for good in ["example.com/a", "my.domain/cache-operator", "a", "github.com/Me/x_y/v2"] {
            assert!(check_module(good).is_ok(), "{good}");
        }
        for bad in ["", "/a", "a//b", "a b", "a/../b", "a\"\nreplace x"] {
            assert!(check_module(bad).unwrap_err().to_string().contains("--repo"), "{bad}");
        }
    }
}
