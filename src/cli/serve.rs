//! `opdev serve`: the embedded control plane alone, for kubectl, Helm and other people's tests.
//! Writes the kubeconfig, says how to use it and what is simulated, and stops cleanly on a signal.

use crate::webhooks::WebhookArgs;
use anyhow::{Context, Result};
use opdev_cluster::data_folder::DataFolder;
use opdev_cluster::owner::Owner;
use opdev_cluster::{Certificates, RENEWED};
use opdev_controlplane::{Config, ControlPlane, Controllers, ExecAnswer, Listen, gaps};
use opdev_event::shell;
use opdev_os::lock::Lock;
use opdev_os::private_folder::PrivateFolder;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Serve only the embedded control plane, for kubectl, Helm and other clients
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Loopback address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where to write the kubeconfig (mode 0600)
    #[arg(long, value_name = "PATH", default_value = ".opdev/kubeconfig")]
    kubeconfig: PathBuf,
    /// The controllers that run: all of them with simulated pods, only those of the cluster (garbage
    /// collection, namespaces), or none, as under envtest
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Which::All)]
    controllers: Which,
    /// Roles decide who may do what, as on a real cluster, instead of letting whoever is known do everything
    #[arg(long)]
    rbac: bool,
    /// Pods wait for the ConfigMaps and Secrets that they name, with the kubelet's reasons (CreateContainerConfigError,
    /// FailedMount), instead of running without them; one whose ServiceAccount is not there is refused
    #[arg(long)]
    strict_pods: bool,
    /// Answer an `exec` in a simulated pod: `ok`, `exit:3` or a text to print; may be repeated. Part of the
    /// command may stand in front, as in `redis-cli ping=PONG`: then only such commands are answered.
    /// Without it an `exec` is refused
    #[arg(long, value_name = "[COMMAND=]ANSWER")]
    exec: Vec<ExecAnswer>,
    #[command(flatten)]
    kubernetes: super::kubernetes::KubernetesArgs,
    /// Keep objects, keys and the address in this folder, so that they are there at the next start and the kubeconfig
    /// stays valid; without it everything is gone at the end
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Start empty: delete what --data-dir holds
    #[arg(long, requires = "data_dir")]
    fresh: bool,
    #[command(flatten)]
    webhooks: WebhookArgs,
    /// Only write etcd, kube-apiserver and kubectl for envtest into this folder (KUBEBUILDER_ASSETS), and end.
    /// No controllers run there unless the variable OPDEV_ENVTEST_CONTROLLERS says cluster or all
    #[arg(long, value_name = "DIR", conflicts_with_all = ["listen", "kubeconfig", "controllers", "rbac", "data_dir"])]
    envtest_assets: Option<PathBuf>,
    /// Say what is not as on a real cluster, and serve nothing
    #[arg(long, conflicts_with = "envtest_assets")]
    fidelity: bool,
}

/// The words for `--controllers`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Which {
    All,
    Cluster,
    None,
}

impl From<Which> for Controllers {
    fn from(which: Which) -> Self {
        match which {
            Which::All => Controllers::All,
            Which::Cluster => Controllers::ClusterOnly,
            Which::None => Controllers::None,
        }
    }
}

/// How long threads that are still at work may take at the end.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// Serves until a signal comes.
pub fn run(args: &ServeArgs) -> ExitCode {
    let result = match &args.envtest_assets {
        Some(folder) => crate::envtest::write(folder, |path| shell::word(&path.display().to_string())),
        None => serve(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            super::visible::complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn serve(args: &ServeArgs) -> Result<()> {
    args.kubernetes.choose(None)?;
    if args.fidelity {
        return tell(&differences(args.rbac));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _log = super::logging::to_stderr();
    let result = runtime.block_on(served(args));
    // A thread that still waits for a webhook holds nobody up.
    runtime.shutdown_timeout(LAST_WAIT);
    result
}

async fn served(args: &ServeArgs) -> Result<()> {
    let began = Instant::now();
    // Listening for signals before anything is written means that nothing is left behind.
    let stop = super::signals::stop_signal()?;
    let path = std::path::absolute(&args.kubeconfig)?;
    let _lock = lock_kubeconfig(&path)?;
    let mut config = Config::default();
    config.controllers = args.controllers.into();
    config.rbac = args.rbac;
    config.strict_pods = args.strict_pods;
    config.exec.clone_from(&args.exec);
    args.webhooks.apply(&mut config.webhooks);
    let data = args.data_dir.as_deref().map(|folder| {
        let folder = PrivateFolder::named(&std::path::absolute(folder)?)?;
        DataFolder::take(&folder, "opdev serve", args.fresh, &Owner::of_user())
    });
    let data = data.transpose()?;
    config.data_dir = data.as_ref().map(|data| data.path.clone());
    let plane = ControlPlane::start_with(config).await.context("the control plane did not start")?;
    let listening = plane.listen(Listen { address: args.listen, ..Listen::default() }).await?;
    write_kubeconfig(&path, &listening.kubeconfig)?;
    if data.as_ref().is_some_and(|data| data.renewed) {
        writeln!(super::visible::err(), "warning: {RENEWED}")?;
    }
    if let Some(moved) = plane.moved_aside() {
        writeln!(super::visible::err(), "warning: {moved}")?;
    }
    let folder = args.webhooks.folder();
    let certificates = folder.map(|folder| Certificates::write_named(&plane, &folder)).transpose()?;
    let kept = data.as_ref().map(|data| data.path.as_path());
    let told = Told { rbac: args.rbac, kept, certificates: certificates.as_ref() };
    announce(&path, listening.address, &told, began)?;
    let signal = stop.await;
    tell(&format!("{signal}: stopping\n"))?;
    plane.stop().await;
    // Without a folder its certificates died with the plane; a file somebody else has written meanwhile stays.
    if data.is_none() && fs::read_to_string(&path).is_ok_and(|text| text == listening.kubeconfig) {
        let _ = fs::remove_file(&path);
    }
    if let Some(certificates) = certificates.filter(|_| data.is_none()) {
        certificates.remove();
    }
    Ok(())
}

/// The kubeconfig is written by one process only.
fn lock_kubeconfig(path: &Path) -> Result<Lock> {
    let lock =
        PrivateFolder::of_file(path).and_then(|(folder, name)| Lock::of(&folder, &name, "opdev serve"));
    match lock.with_context(|| format!("{} cannot be written", path.display()))? {
        Ok(lock) => Ok(lock),
        Err(holder) => anyhow::bail!(
            "{} is the kubeconfig of {holder}\n  to do: name another file with --kubeconfig, or stop the other one",
            path.display()
        ),
    }
}

/// What is told at the start beside the address.
struct Told<'a> {
    rbac: bool,
    /// Where objects are kept.
    kept: Option<&'a Path>,
    certificates: Option<&'a Certificates>,
}

fn announce(kubeconfig: &Path, address: SocketAddr, told: &Told<'_>, began: Instant) -> Result<()> {
    let mut text = format!(
        "control plane ready at https://{address} after {} ms\n\n  export KUBECONFIG={}\n  kubectl get namespaces\n\n",
        began.elapsed().as_millis(),
        shell::word(&kubeconfig.display().to_string()),
    );
    if let Some(data) = told.kept {
        text.push_str(&format!("objects are kept in {}\n\n", data.display()));
    }
    text.extend(told.certificates.map(|found| {
        let folder = shell::word(&found.folder.display().to_string());
        format!("webhook servers on this machine find tls.crt and tls.key in {folder}\n\n")
    }));
    text.push_str(&differences(told.rbac));
    text.push_str("\nCtrl-C stops it.\n");
    tell(&text)
}

/// What is not as on a real cluster, one line each.
fn differences(rbac: bool) -> String {
    let lines: String = gaps(rbac).map(|gap| format!("  {:<12} {}\n", gap.about, gap.instead)).collect();
    format!("not as on a real cluster:\n{lines}")
}

/// Writes to standard output at once; a reader that went away is no error.
fn tell(text: &str) -> Result<()> {
    let mut out = super::visible::out();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Writes the kubeconfig for its owner only. A `.opdev` folder is made where it is missing, with the
/// `.gitignore` that keeps it out of commits; any other folder has to be there.
fn write_kubeconfig(path: &Path, text: &str) -> Result<()> {
    let (folder, name) = PrivateFolder::of_file(path)?;
    folder.write(&name, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_kubeconfig_is_private_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".opdev").join("kubeconfig");
        write_kubeconfig(&path, "one").unwrap();
        write_kubeconfig(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(folder.path().join(".opdev/.gitignore")).unwrap(), "*\n");
        assert_eq!(fs::read_dir(folder.path().join(".opdev")).unwrap().count(), 2);
        assert!(write_kubeconfig(&folder.path().join("none/kubeconfig"), "three").is_err());
    }

    #[test]
    fn what_is_enforced_is_no_difference() {
        let line = |rbac: bool| differences(rbac).lines().any(|line| line.starts_with("  RBAC "));
        assert!(line(false) && !line(true));
        assert!(differences(true).contains("\n  webhooks "));
    }

    #[test]
    fn a_path_survives_a_shell() {}
}
