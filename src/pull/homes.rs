//! Where Helm and Docker keep their files: variables first, then the usual folders of the system.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The files of Helm and Docker that say which repositories there are and who the user is there. They are
/// only read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homes {
    /// `repositories.yaml`, which `helm repo add` writes.
    pub repositories: PathBuf,
    /// The folder of the indexes that `helm repo update` has downloaded.
    pub cached_indexes: PathBuf,
    /// Files with logins of registries, the first one with an answer wins: one that `REGISTRY_AUTH_FILE`
    /// names, that of `helm registry login`, Docker's, then those of podman, buildah and skopeo.
    pub logins: Vec<PathBuf>,
}

impl Homes {
    /// The files that the environment names.
    pub fn from_environment() -> Homes {
        Homes::new(&|name| std::env::var_os(name), cfg!(target_os = "macos"))
    }

    fn new(variable: &dyn Fn(&str) -> Option<OsString>, macos: bool) -> Homes {
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = path("HOME").unwrap_or_default();
        let folder = |own: &str, xdg: &str, usual: [&str; 2]| {
            let usual = home.join(usual[usize::from(macos)]);
            path(own).unwrap_or_else(|| path(xdg).unwrap_or(usual).join("helm"))
        };
        let config = folder("HELM_CONFIG_HOME", "XDG_CONFIG_HOME", [".config", "Library/Preferences"]);
        let cache = folder("HELM_CACHE_HOME", "XDG_CACHE_HOME", [".cache", "Library/Caches"]);
        let docker = path("DOCKER_CONFIG").unwrap_or_else(|| home.join(".docker"));
        Homes {
            repositories: path("HELM_REPOSITORY_CONFIG").unwrap_or_else(|| config.join("repositories.yaml")),
            cached_indexes: path("HELM_REPOSITORY_CACHE").unwrap_or_else(|| cache.join("repository")),
            logins: [
                path("REGISTRY_AUTH_FILE"),
                Some(path("HELM_REGISTRY_CONFIG").unwrap_or_else(|| config.join("registry/config.json"))),
                Some(docker.join("config.json")),
                path("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json")),
                Some(
                    path("XDG_CONFIG_HOME")
                        .unwrap_or_else(|| home.join(".config"))
                        .join("containers/auth.json"),
                ),
            ]
            .into_iter()
            .flatten()
            .collect(),
        }
    }

    /// The index of a repository as `helm repo update` has downloaded it.
    pub(super) fn cached_index(&self, repository: &str) -> PathBuf {
        self.cached_indexes.join(Path::new(&format!("{repository}-index.yaml")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(variables: &[(&str, &str)], macos: bool) -> Homes {
        let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        Homes::new(&get, macos)
    }

    #[test]
    fn variables_win_over_folders() {
        let plain = homes(&[("HOME", "/h")], false);
        assert_eq!(plain.repositories, Path::new("/h/.config/helm/repositories.yaml"));
        assert_eq!(plain.cached_index("a"), Path::new("/h/.cache/helm/repository/a-index.yaml"));
        assert_eq!(plain.logins[0], Path::new("/h/.config/helm/registry/config.json"));
        assert_eq!(plain.logins[1], Path::new("/h/.docker/config.json"));
        let podman = homes(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/r"), ("REGISTRY_AUTH_FILE", "/a")], false);
        assert_eq!(podman.logins[0], Path::new("/a"));
        assert_eq!(podman.logins[3], Path::new("/r/containers/auth.json"));
        assert_eq!(podman.logins[4], Path::new("/h/.config/containers/auth.json"));
        let mac = homes(&[("HOME", "/h")], true);
        assert_eq!(mac.repositories, Path::new("/h/Library/Preferences/helm/repositories.yaml"));
        let xdg = homes(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x"), ("DOCKER_CONFIG", "/d")], false);
        assert_eq!(xdg.repositories, Path::new("/x/helm/repositories.yaml"));
        assert_eq!(xdg.logins[1], Path::new("/d/config.json"));
        let own = homes(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x"), ("HELM_CONFIG_HOME", "/c")], false);
        assert_eq!(own.repositories, Path::new("/c/repositories.yaml"));
        let file = homes(&[("HELM_REPOSITORY_CONFIG", "/f.yaml"), ("HELM_REPOSITORY_CACHE", "/i")], false);
        assert_eq!(file.repositories, Path::new("/f.yaml"));
        assert_eq!(file.cached_index("a"), Path::new("/i/a-index.yaml"));
    }
}
