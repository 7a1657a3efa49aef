//! The command line as a user meets it: exit codes, messages, and that nothing is left half-written.

use crate::inner_loop::demo_project;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn opdev(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_opdev"))
        .args(args)
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("KUBECONFIG")
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_folder_without_a_project_says_what_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    let output = opdev(folder.path(), &["run", "--embedded"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("no operator project") && text.contains("config/watches.yaml"), "{text}");
    assert!(!folder.path().join(".opdev").exists(), "a folder that is no project was written to");
}

#[test]
fn a_missing_project_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = opdev(folder.path(), &["run", "--embedded", "--project", "nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nowhere"), "{}", stderr(&output));
}

#[test]
fn wrong_usage_exits_with_2_and_help_with_0() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(opdev(folder.path(), &["run", "--embeded"]).status.code(), Some(2));
    assert_eq!(opdev(folder.path(), &["nonsense"]).status.code(), Some(2));
    assert_eq!(opdev(folder.path(), &["run", "--reconcile-period", "soon"]).status.code(), Some(2));
    assert_eq!(opdev(folder.path(), &["--help"]).status.code(), Some(0));
}

#[test]
fn a_context_that_does_not_exist_is_named_with_those_that_do() {
    let (_folder, root) = crate::inner_loop::demo_project();
    let config = root.join("kubeconfig");
    fs::write(
        &config,
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\n\
         clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n\
         contexts: [{name: prod, context: {cluster: c, user: u}}]\n",
    )
    .unwrap();
    let config = config.to_str().unwrap();
    let output = opdev(&root, &["run", "--kubeconfig", config, "--context", "staging"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no context staging; it has prod"), "{}", stderr(&output));
    // An unreachable cluster is an error that offers the embedded one, never a silent fallback.
    let output = opdev(&root, &["run", "--kubeconfig", config]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--embedded"), "{}", stderr(&output));
}

#[test]
fn only_takes_kinds_of_the_project() {
    let (_folder, root) = demo_project();
    let output = opdev(&root, &["run", "--embedded", "--plain", "--only", "memcachd"]);
    assert!(!output.status.success());
    let said = stderr(&output);
    assert!(
        said.contains("--only memcachd: the project has no such kind; did you mean Memcached?"),
        "{said}"
    );
}

#[test]
fn tail_says_when_nothing_has_run_yet() {
    let (_folder, root) = crate::inner_loop::demo_project();
    let output = opdev(&root, &["tail"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("opdev run"), "{}", stderr(&output));
}
