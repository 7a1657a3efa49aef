//! The debugger of a Go program: Delve starts it and waits for an editor on a local address. The program runs at once and
//! goes on without one.

use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// What Delve prints before the reason for which the program stands still.
pub(super) const STOPPED: &str = "Stop reason: ";
/// That reason where the program has ended.
pub(super) const EXITED: &str = "exited";

/// The command that runs a binary with its arguments under the debugger.
///
/// # Errors
/// Where Delve is not installed.
pub(super) fn command(address: &str, binary: &Path, arguments: &[String]) -> Result<Vec<String>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let go = ["GOBIN", "GOPATH", "HOME"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let [bin, workspace, home] = go;
    let of_go = bin
        .into_iter()
        .chain(workspace.map(|folder| folder.join("bin")))
        .chain(home.map(|folder| folder.join("go/bin")));
    let found = std::env::split_paths(&path).chain(of_go).map(|folder| folder.join("dlv"));
    let Some(dlv) = found.into_iter().find(|path| path.is_file()) else {
        bail!("the debugger dlv is not installed");
    };
    let words = [
        dlv.display().to_string(),
        "exec".to_owned(),
        "--headless".to_owned(),
        "--api-version=2".to_owned(),
        // It runs without a client, and one may come and go.
        "--accept-multiclient".to_owned(),
        "--continue".to_owned(),
        format!("--listen={address}"),
        binary.display().to_string(),
        "--".to_owned(),
    ];
    Ok(words.into_iter().chain(arguments.iter().cloned()).collect())
}

/// What to do where it is not installed.
pub(super) const INSTALL: &str =
    "go install github.com/go-delve/delve/cmd/dlv@latest, then press R; or start opdev without --debug";

/// How an editor comes to the program.
pub(super) fn attach(address: &str) -> String {
    let port = address.rsplit(':').next().unwrap_or(address);
    format!(
        "dlv connect {address}; in VS Code a launch configuration with \"request\": \"attach\", \"mode\": \"remote\", \"port\": \
         {port}; in GoLand \"Go Remote\" with this port"
    )
}
