//! A listening plane with the real command line tools pointed at it.

use crate::oracle::oracle;
use opdev_controlplane::{Config, ControlPlane, Listen};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Far more than any call here needs; a tool that hangs fails its test instead of the whole run.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    pub(crate) plane: ControlPlane,
    folder: TempDir,
}

/// The output of a tool.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        Cluster::start_with(Config::default()).await
    }

    pub(crate) async fn start_with(config: Config) -> Self {
        let plane = ControlPlane::start_with(config).await.unwrap();
        let listening = plane.listen(Listen::default()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), &listening.kubeconfig).unwrap();
        Cluster { plane, folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file for the tools to read.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// The command with an environment in which nothing of the developer's own is seen.
    pub(crate) fn command(&self, tool: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(oracle(tool));
        command
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", self.path("kubeconfig"))
            .env("HOME", self.folder.path())
            .env("KUBE_EDITOR", "false")
            .current_dir(root())
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    async fn finish(mut command: Command, input: Option<&str>) -> Said {
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().unwrap();
        if let Some(input) = input {
            child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        }
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
            .await
            .unwrap_or_else(|_| panic!("{:?} did not end", command.as_std()))
            .unwrap();
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a tool and says how it went.
    pub(crate) async fn run(&self, tool: &str, arguments: &[&str]) -> Said {
        Self::finish(self.command(tool, arguments), None).await
    }

    /// Runs a tool that must succeed; its output.
    pub(crate) async fn ok(&self, tool: &str, arguments: &[&str]) -> String {
        let said = self.run(tool, arguments).await;
        assert_eq!(said.code, 0, "{tool} {arguments:?}\n{}{}", said.out, said.err);
        said.out
    }

    pub(crate) async fn kubectl(&self, arguments: &str) -> String {
        self.ok("kubectl", &arguments.split_whitespace().collect::<Vec<_>>()).await
    }

    /// kubectl with `-f -`.
    pub(crate) async fn kubectl_with(&self, arguments: &str, input: &str) -> Said {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        Self::finish(self.command("kubectl", &arguments), Some(input)).await
    }

    pub(crate) async fn apply(&self, input: &str) -> String {
        let said = self.kubectl_with("apply -f -", input).await;
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
        said.out
    }
}

/// This repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
