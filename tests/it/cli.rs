//! The command line as a user meets it: exit codes, messages, and that nothing is left half-written.

use crate::inner_loop::demo_project;
use crate::masked::masked;
use expect_test::expect;
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
    expect![[r#"
        error: no operator project in TMP or above it
          looked for: opdev.yaml, watches.yaml, PROJECT with api/, a go.mod with controller-runtime, config/types
          to do:
            opdev run --project DIR           where DIR has one of them
            opdev init --helm-chart CHART     begins with a chart; --go with a Go operator, --types with a script
    "#]]
    .assert_eq(&masked(&text));
    assert!(!folder.path().join(".opdev").exists(), "a folder that is no project was written to");
}

#[test]
fn a_missing_project_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = opdev(folder.path(), &["run", "--embedded", "--project", "nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    expect![[r#"
        error: the project folder nowhere cannot be opened: No such file or directory (os error 2)
    "#]]
    .assert_eq(&stderr(&output));
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
    expect![[r#"
        error: the kubeconfig has no context staging; it has prod
          where: TMP/demo/kubeconfig
          to do: name one with --context, or start with --embedded to work without a cluster
    "#]]
    .assert_eq(&masked(&stderr(&output)));
    // An unreachable cluster is an error that offers the embedded one, never a silent fallback.
    let output = opdev(&root, &["run", "--kubeconfig", config]);
    assert_eq!(output.status.code(), Some(1));
    expect![[r#"
        error: the API server of context prod (https://127.0.0.1:PORT) does not answer: the connection was refused: nothing listens there
          where: cluster c in TMP/demo/kubeconfig
          to do: check it with `kubectl --context prod version`, or start with --embedded to work without a cluster
    "#]]
    .assert_eq(&masked(&stderr(&output)));
}

#[test]
fn only_takes_kinds_of_the_project() {
    let (_folder, root) = demo_project();
    let output = opdev(&root, &["run", "--embedded", "--plain", "--only", "memcachd"]);
    assert!(!output.status.success());
    let said = stderr(&output);
    expect![[r#"
        error: --only memcachd: the project has no such kind; did you mean Memcached?
    "#]]
    .assert_eq(&said);
}

#[test]
fn tail_says_when_nothing_has_run_yet() {
    let (_folder, root) = crate::inner_loop::demo_project();
    let output = opdev(&root, &["tail"]);
    assert_eq!(output.status.code(), Some(1));
    expect![[r#"
        error: TMP/demo/.opdev/events.jsonl does not exist: no opdev has run in this project yet; start one with `opdev run`
    "#]]
    .assert_eq(&masked(&stderr(&output)));
}

#[test]
fn opdev_alone_says_what_to_do_next() {
    let folder = tempfile::tempdir().unwrap();
    let said = stderr(&opdev(folder.path(), &[]));
    assert!(said.contains("What to do next:") && said.contains("opdev run"), "{said}");
}

#[test]
fn the_version_is_for_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    let output = opdev(folder.path(), &["version", "-o", "json"]);
    let version: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(version["opdev"], env!("CARGO_PKG_VERSION"));
    let helm_page = include_str!("../../docs/helm.md");
    for helm in ["3", "4"] {
        let helm = version["helm"][helm].as_str().unwrap();
        assert!(
            helm_page.contains(&format!("Helm {helm}")),
            "docs/helm.md is about another Helm than {helm}"
        );
    }
    assert!(version["kubernetes"].as_str().unwrap().starts_with("v1."), "{version}");
    let text = opdev(folder.path(), &["version"]).stdout;
    assert!(String::from_utf8(text).unwrap().starts_with(concat!("opdev ", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn shells_read_their_completions() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = opdev(folder.path(), &["completions", shell]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("OPDEV_COMPLETE"), "{shell}: {text}");
        let file = folder.path().join(shell);
        fs::write(&file, text).unwrap();
        // A shell that is not here has nothing to say.
        if let Ok(read) = Command::new(shell).arg("-n").arg(&file).output()
            && ["bash", "zsh", "fish"].contains(&shell)
        {
            assert!(read.status.success(), "{shell}: {}", stderr(&read));
        }
    }
    assert_eq!(opdev(folder.path(), &["completions", "csh"]).status.code(), Some(2));
}

#[test]
fn bash_completes_values() {
    let (folder, project) = demo_project();
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(
        &kubeconfig,
        "apiVersion: v1\nkind: Config\ncurrent-context: kind-a\ncontexts:\n- {name: kind-a, context: {cluster: a, \
         user: a}}\n- {name: kind-b, context: {cluster: a, user: a}}\n",
    )
    .unwrap();
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let done = Command::new("git").args(who).args(args).current_dir(&project).output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&["tag", "v1.2.3"]);
    // A stranger's names would be commands once enter is pressed.
    git(&["tag", "v$(reboot)"]);
    let sample = "apiVersion: a.example.com/v1\nkind: Hello\nmetadata: {name: \"$(reboot)\"}\n";
    fs::write(project.join("samples/stranger.yaml"), sample).unwrap();
    let script = r#"
        source <(opdev completions bash)
        for line in "$@"; do
            IFS=' ' read -ra COMP_WORDS <<< "$line"
            [[ "$line" == *' ' ]] && COMP_WORDS+=("")
            COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
            COMPREPLY=()
            _clap_complete_opdev opdev "${COMP_WORDS[COMP_CWORD]}"
            echo "$line: ${COMPREPLY[*]}"
        done"#;
    let lines = [
        ("opdev run --context ", "kind-a kind-b"),
        ("opdev run --on-exit ", "leave uninstall release"),
        ("opdev run --only Pod", "PodSet"),
        ("opdev plan Hello/", "Hello/example Hello/example-ingress"),
        ("opdev explain hot", "hot-loop"),
        ("opdev upgrade --from v", "v1.2.3"),
        ("opdev upgrade --only crd", "crd-left-old"),
        ("opdev render x charts/h", "charts/hello/"),
        ("opdev torture --scenario up", "up-down"),
        ("opdev run --project ch", "charts/"),
        ("opdev tor", "torture"),
    ];
    let program = Path::new(env!("CARGO_BIN_EXE_opdev")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(program.to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let done = Command::new("bash")
        .args(["-c", script, "bash"])
        .args(lines.map(|(typed, _)| typed))
        .current_dir(&project)
        .env("PATH", path)
        .env("KUBECONFIG", &kubeconfig)
        .output()
        .unwrap();
    let expected: String = lines.iter().map(|(typed, found)| format!("{typed}: {found}\n")).collect();
    assert_eq!(
        String::from_utf8(done.stdout).unwrap(),
        expected,
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(!project.join(".opdev").exists(), "a press of tab writes nothing");
}

#[test]
fn each_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    let output = opdev(folder.path(), &["man", "man"]);
    assert_eq!(output.status.code(), Some(1));
    expect![[r#"
        error: man pages cannot be written to man: No such file or directory (os error 2)
    "#]]
    .assert_eq(&stderr(&output));
    fs::create_dir(&pages).unwrap();
    let output = opdev(folder.path(), &["man", "man"]);
    assert!(output.status.success(), "{}", stderr(&output));
    for command in ["opdev", "opdev-run", "opdev-operate", "opdev-create-api", "opdev-plan"] {
        let page = fs::read_to_string(pages.join(format!("{command}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains(".SH SYNOPSIS"), "{command}: {page}");
    }
    let operate = fs::read_to_string(pages.join("opdev-operate.1")).unwrap();
    assert!(operate.contains("leader\\-elect"), "{operate}");
}
