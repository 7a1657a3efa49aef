//! The assets of envtest: a folder with `etcd`, `kube-apiserver` and `kubectl` for `KUBEBUILDER_ASSETS`. Each
//! is a link to this program, which plays the part whose name it is called by. Read `apiserver` next.

mod apiserver;
mod etcd;
mod flags;

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

/// The link to the kubectl that was on the PATH when the folder was made: suites may start kubectl with no
/// other variable than KUBECONFIG.
const KEPT_KUBECTL: &str = ".kubectl";
/// Folders with programs where there is no PATH.
const USUAL: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin"];

/// What envtest looks for in its folder.
const ENTRY_POINTS: [&str; 3] = ["etcd", "kube-apiserver", "kubectl"];

/// Plays the part whose name this program was called by, until `stop`; `None` where it was called as itself.
pub fn part<S>(stop: impl FnOnce() -> Result<S>) -> Option<Result<()>>
where
    S: Future<Output = &'static str>,
{
    let called = PathBuf::from(std::env::args_os().next()?);
    let arguments = || std::env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
    Some(match called.file_name()?.to_str()? {
        "etcd" => etcd::run(arguments(), stop),
        "kube-apiserver" => apiserver::run(arguments(), stop),
        "kubectl" => Err(kubectl()),
        _ => return None,
    })
}

/// Makes the entry points in a folder, which is made too, and says how to use them; `quoted` writes a path
/// for a shell.
pub fn write(folder: &Path, quoted: impl Fn(&Path) -> String) -> Result<()> {
    let folder = std::path::absolute(folder)?;
    let program = std::env::current_exe().context("the path of this program is not known")?;
    for name in ENTRY_POINTS {
        refuse_foreign(&folder.join(name), &program)?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for name in ENTRY_POINTS {
        let path = folder.join(name);
        if path.is_symlink() {
            fs::remove_file(&path).with_context(|| format!("{} cannot be replaced", path.display()))?;
        }
        symlink(&program, &path).with_context(|| format!("{} cannot be made", path.display()))?;
    }
    let kept = folder.join(KEPT_KUBECTL);
    if kept.is_symlink() {
        fs::remove_file(&kept).with_context(|| format!("{} cannot be replaced", kept.display()))?;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(found) = find_kubectl(on_path(&path)) {
        symlink(&found, &kept).with_context(|| format!("{} cannot be made", kept.display()))?;
    }
    let text = format!(
        "{} has etcd, kube-apiserver and kubectl, all of them opdev\n\n  \
         export KUBEBUILDER_ASSETS={}\n  go test ./...\n\n\
         No controllers run there, as under envtest; {} has garbage collection and namespaces,\n\
         {}=all has all controllers and simulated pods. kubectl is the one on your PATH,\n\
         or else the one that is there now.\n",
        folder.display(),
        quoted(&folder),
        format_args!("{}=cluster", apiserver::CONTROLLERS),
        apiserver::CONTROLLERS,
    );
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Only links to a program of this one's name are replaced: a real binary was put there by somebody.
fn refuse_foreign(path: &Path, program: &Path) -> Result<()> {
    let ours = match fs::read_link(path) {
        Ok(target) => target.file_name() == program.file_name(),
        Err(_) => fs::symlink_metadata(path).is_err(),
    };
    if !ours {
        bail!(
            "{} is there already and is not a link to opdev\n  to do: name a folder of its own, or take the file away",
            path.display()
        );
    }
    Ok(())
}

/// Where kubectl may be on a PATH. An empty part would be the working directory, which nobody has meant.
fn on_path(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
    let named = folders.into_iter().filter(|folder| !folder.as_os_str().is_empty());
    named.map(|folder| folder.join("kubectl"))
}

/// The first kubectl of these that is there, and is not this program.
fn find_kubectl(mut places: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let own = std::env::current_exe().and_then(fs::canonicalize).ok();
    places.find(|file| file.is_file() && fs::canonicalize(file).ok() != own)
}

/// Becomes the kubectl on the PATH, or the one that was there when the folder was made; comes back only with
/// the reason why not.
fn kubectl() -> anyhow::Error {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let kept = called.parent().map(|folder| folder.join(KEPT_KUBECTL));
    let usual = USUAL.iter().map(|folder| Path::new(folder).join("kubectl"));
    match find_kubectl(on_path(&path).chain(kept).chain(usual)) {
        Some(program) => {
            let failed = std::process::Command::new(&program).args(std::env::args_os().skip(1)).exec();
            anyhow::Error::new(failed).context(format!("{} cannot be run", program.display()))
        }
        None => anyhow::anyhow!(
            "no kubectl is on your PATH, and opdev brings none\n  to do: install kubectl, or name it in TEST_ASSET_KUBECTL"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_is_found_without_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        fs::write(&real, "kubectl").unwrap();
        let kept = folder.path().join(KEPT_KUBECTL);
        symlink(&real, &kept).unwrap();
        assert_eq!(on_path(OsStr::new("")).count(), 0);
        assert_eq!(find_kubectl(on_path(OsStr::new("")).chain(Some(kept.clone()))), Some(kept));
        // This program is no kubectl, whatever it is called.
        let own = folder.path().join("kubectl");
        symlink(std::env::current_exe().unwrap(), &own).unwrap();
        assert_eq!(find_kubectl(on_path(folder.path().as_os_str())), None);
    }

    #[test]
    fn what_somebody_else_put_there_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new("/usr/bin/opdev");
        let path = folder.path().join("etcd");
        assert!(refuse_foreign(&path, program).is_ok());
        symlink("/somewhere/else/opdev", &path).unwrap();
        assert!(refuse_foreign(&path, program).is_ok(), "an older opdev");
        fs::remove_file(&path).unwrap();
        symlink("/usr/local/kubebuilder/bin/etcd", &path).unwrap();
        assert!(refuse_foreign(&path, program).is_err());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a real etcd").unwrap();
        let why = refuse_foreign(&path, program).unwrap_err().to_string();
        assert!(why.contains("etcd is there already") && why.contains("to do:"), "{why}");
    }
}
