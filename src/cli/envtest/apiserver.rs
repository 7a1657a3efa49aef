//! What envtest starts as kube-apiserver: the embedded control plane behind that program's flags, on the port and
//! with the certificates that envtest made.

use super::flags::Flags;
use anyhow::{Context, Result, bail};
use opdev_controlplane::{Config, ControlPlane, Controllers, Listen, Serving};
use opdev_object::facts::minors;
use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// How long threads that are still at work may take at the end.
const LAST_WAIT: Duration = Duration::from_millis(500);
/// The variable that switches controllers on.
pub(super) const CONTROLLERS: &str = "OPDEV_ENVTEST_CONTROLLERS";
/// The variable that names another Kubernetes.
const KUBERNETES: &str = "OPDEV_ENVTEST_KUBERNETES";

/// The flags that are heeded.
const HEEDED: [&str; 7] = [
    "authorization-mode",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "secure-port",
    "tls-cert-file",
    "tls-private-key-file",
];

/// envtest looks through these lines for the flags it may use; `--insecure-port` must not be among them.
const HELP: &str = "kube-apiserver, played by opdev: the embedded control plane for envtest

Usage: kube-apiserver [flags]

  --authorization-mode strings    with RBAC in it roles decide, otherwise whoever is known may do everything
  --bind-address ip               a loopback address (default 127.0.0.1)
  --secure-port int               the port of HTTPS (default 6443)
  --cert-dir string               the folder with apiserver.crt and apiserver.key
  --tls-cert-file string          the serving certificate, before the one in --cert-dir
  --tls-private-key-file string   its key
  --client-ca-file string         whose client certificates are believed: CN is the user, O are the groups
  --help                          this text
  --version                       which program this is

Any other flag is taken and has no effect; a note on standard error names those that were given. Objects live in
memory, whatever --etcd-servers says.

Environment:

  OPDEV_ENVTEST_CONTROLLERS   none: nothing but the API server acts, as under envtest (default)
                              cluster: garbage collection, deletion of namespaces, service accounts
                              all: workloads too, with simulated nodes and pods
  OPDEV_ENVTEST_KUBERNETES    which Kubernetes it is, such as 1.36 (default: the newest that opdev has)
";

pub(super) fn run<S>(arguments: Vec<String>, stop: impl FnOnce() -> Result<S>) -> Result<()>
where
    S: Future<Output = &'static str>,
{
    let flags = Flags::parse(arguments);
    if let Some(named) = std::env::var(KUBERNETES).ok().filter(|named| !named.is_empty()) {
        minors::choose(&named).context(KUBERNETES)?;
    }
    if flags.has("help") || flags.has("h") || flags.has("version") {
        let version = format!("Kubernetes {}\n", opdev_controlplane::git_version());
        let text = if flags.has("version") { &version } else { HELP };
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(());
    }
    let mut config = Config::default();
    config.controllers = controllers(std::env::var(CONTROLLERS).ok().as_deref())?;
    config.rbac = by_roles(&flags);
    // There is no network of services under envtest either.
    config.webhooks.strict = true;
    let chosen = match config.controllers {
        Controllers::None => "none",
        Controllers::ClusterOnly => "cluster",
        Controllers::All => "all",
    };
    let listen = listen(&flags)?;
    let note = |text: String| std::io::stderr().write_all(text.as_bytes());
    let idle = flags.besides(&HEEDED);
    if !idle.is_empty() {
        note(format!("opdev as kube-apiserver: without effect: --{}\n", idle.join(", --")))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let stop = stop()?;
        let plane = ControlPlane::start_with(config).await.context("the control plane did not start")?;
        let listening = plane.listen(listen).await?;
        note(format!("opdev as kube-apiserver: at https://{}, controllers: {chosen}\n", listening.address))?;
        stop.await;
        plane.stop().await;
        Ok(())
    });
    // A thread that still waits for a webhook holds nobody up.
    runtime.shutdown_timeout(LAST_WAIT);
    result
}

/// Returns true if roles decide who may do what.
fn by_roles(flags: &Flags) -> bool {
    flags.get("authorization-mode").is_some_and(|modes| modes.split(',').any(|mode| mode.trim() == "RBAC"))
}

/// The controllers that the variable asks for.
fn controllers(said: Option<&str>) -> Result<Controllers> {
    match said.unwrap_or_default() {
        "" | "none" => Ok(Controllers::None),
        "cluster" => Ok(Controllers::ClusterOnly),
        "all" => Ok(Controllers::All),
        other => bail!("{CONTROLLERS}={other}: it may be none, cluster or all"),
    }
}

/// Address and certificates, read from the files that the flags name.
fn listen(flags: &Flags) -> Result<Listen> {
    let ip = flags.get("bind-address").unwrap_or("127.0.0.1");
    let ip: IpAddr = ip.parse().with_context(|| format!("--bind-address: {ip} is no IP address"))?;
    let port = flags.get("secure-port").unwrap_or("6443");
    let port: u16 = port.parse().with_context(|| format!("--secure-port: {port} is no port"))?;
    let file = |flag: &str, path: &Path| {
        fs::read_to_string(path).with_context(|| format!("--{flag}: {} cannot be read", path.display()))
    };
    let serving = match (flags.get("tls-cert-file"), flags.get("tls-private-key-file"), flags.get("cert-dir"))
    {
        (Some(certificate), Some(key), _) => Some(Serving {
            certificate: file("tls-cert-file", Path::new(certificate))?,
            key: file("tls-private-key-file", Path::new(key))?,
        }),
        (Some(_), None, _) | (None, Some(_), _) => {
            bail!("--tls-cert-file and --tls-private-key-file belong together")
        }
        (None, None, Some(folder)) if Path::new(folder).join("apiserver.crt").exists() => Some(Serving {
            certificate: file("cert-dir", &Path::new(folder).join("apiserver.crt"))?,
            key: file("cert-dir", &Path::new(folder).join("apiserver.key"))?,
        }),
        // The real one makes a self-signed pair then, which nobody can check either.
        (None, None, _) => None,
    };
    let client_authorities =
        flags.get("client-ca-file").map(|path| file("client-ca-file", Path::new(path))).transpose()?;
    Ok(Listen { address: SocketAddr::new(ip, port), serving, client_authorities, project: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn flags(line: &str) -> Flags {
        Flags::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn controllers_are_off_unless_asked_for() {
        assert_eq!(controllers(None).unwrap(), Controllers::None);
        assert_eq!(controllers(Some("")).unwrap(), Controllers::None);
        assert_eq!(controllers(Some("cluster")).unwrap(), Controllers::ClusterOnly);
        assert_eq!(controllers(Some("all")).unwrap(), Controllers::All);
        let why = controllers(Some("some")).unwrap_err().to_string();
        expect!["OPDEV_ENVTEST_CONTROLLERS=some: it may be none, cluster or all"].assert_eq(&why);
    }

    #[test]
    fn roles_decide_where_rbac_is_among_the_modes() {
        assert!(by_roles(&flags("--authorization-mode=Node,RBAC")));
        assert!(!by_roles(&flags("--authorization-mode=AlwaysAllow")));
        assert!(!by_roles(&flags("")));
    }

    #[test]
    fn the_certificates_come_from_the_folder_or_from_the_files_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let bare = listen(&flags(&format!("--cert-dir={at} --secure-port 7"))).unwrap();
        assert_eq!((bare.address, bare.serving), (([127, 0, 0, 1], 7).into(), None));
        for (name, text) in [("apiserver.crt", "crt"), ("apiserver.key", "key"), ("ca.crt", "ca")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let all = listen(&flags(&format!("--cert-dir={at} --client-ca-file={at}/ca.crt"))).unwrap();
        let serving = Serving { certificate: "crt".to_owned(), key: "key".to_owned() };
        assert_eq!((all.serving, all.client_authorities), (Some(serving), Some("ca".to_owned())));
        for (line, word) in [
            (format!("--tls-cert-file={at}/apiserver.crt"), "belong together"),
            (format!("--client-ca-file={at}/none"), "none cannot be read"),
            ("--secure-port=x".to_owned(), "x is no port"),
            ("--bind-address=here".to_owned(), "here is no IP address"),
        ] {
            let why = listen(&flags(&line)).unwrap_err().to_string();
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn the_help_lists_what_is_heeded_and_no_insecure_port() {
        for flag in HEEDED {
            assert!(HELP.contains(&format!("\n  --{flag} ")), "{flag}");
        }
        assert!(HELP.contains(CONTROLLERS) && !HELP.contains("--insecure-port"));
    }
}
