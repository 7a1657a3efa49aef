//! `opdev serve` as a process of its own that stands for a cluster, until it is dropped.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Served {
    /// Its home is the folder, where it writes its kubeconfig under this name. It has started.
    pub(crate) fn start(folder: &Path, kubeconfig: &str, args: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_opdev"))
            .args(["serve", "--kubeconfig", kubeconfig])
            .args(args)
            .current_dir(folder)
            .env("HOME", folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines
            .find(|line| line.as_ref().unwrap().contains("Ctrl-C"))
            .expect("the server has not started")
            .unwrap();
        Served(child)
    }
}
