//! `opdev init` and `opdev create api`: the files they write (`tests/golden/scaffold`; `UPDATE_GOLDEN=1`
//! writes them anew), that what they write runs, and that their messages help.

mod corpus;
mod errors;
mod go;
mod opened;
mod shipped;

use crate::inner_loop::Opdev;
use crate::masked::masked;
use expect_test::expect;
use opdev_cluster::Choice;
use opdev_event::{Event, ObjectTask, Outcome};
use std::fs;
use std::path::{Path, PathBuf};
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

/// A folder whose name may be a project's.
fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("project-").tempdir().unwrap()
}

fn done(folder: &Path, args: &[&str]) -> String {
    let output = opdev(folder, args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {error}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned() + &error
}

fn refused(folder: &Path, args: &[&str]) -> String {
    let output = opdev(folder, args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The chart of the demo.
fn chart() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/memcached").display().to_string()
}

fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() { open.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found.sort();
    found
}

/// All files with their texts; of charts only the names.
fn tree(root: &Path) -> String {
    let mut out = String::new();
    for path in files(root) {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        out.push_str(&format!("=== {name}\n"));
        if !name.starts_with("helm-charts/") && name != "go.sum" {
            out.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    out
}

/// The commands of each project; the first is `init`.
const PROJECTS: [(&str, &[&[&str]]); 7] = [
    ("chart", &[&["init", "--project-name", "cache-operator", "--group", "cache", "--helm-chart", "CHART"]]),
    (
        "new-chart",
        &[
            &["init", "--project-name", "web-operator", "--domain", "example.com"],
            &["create", "api", "--group", "web", "--version", "v1", "--kind", "Site"],
        ],
    ),
    (
        "typescript",
        &[&[
            "init",
            "--types",
            "--project-name",
            "pods",
            "--group",
            "app",
            "--version",
            "v1alpha1",
            "--kind",
            "Greeting",
        ]],
    ),
    (
        "templates",
        &[
            &["init", "--types", "--project-name", "pods", "--multigroup"],
            &[
                "create",
                "api",
                "--group",
                "app",
                "--version",
                "v1alpha1",
                "--kind",
                "Greeting",
                "--reconciler",
                "templates",
            ],
            &[
                "create",
                "api",
                "--group",
                "ops",
                "--version",
                "v1",
                "--kind",
                "Note",
                "--namespaced=false",
                "--reconciler",
                "ts",
            ],
        ],
    ),
    (
        "hybrid",
        &[
            &["init", "--project-name", "cache-operator", "--group", "cache", "--helm-chart", "CHART"],
            &[
                "create",
                "api",
                "--group",
                "cache",
                "--version",
                "v1alpha1",
                "--kind",
                "Backup",
                "--reconciler",
                "ts",
            ],
        ],
    ),
    (
        "go",
        &[
            &["init", "--go", "--project-name", "greeter", "--repo", "example.com/greeter"],
            &["create", "api", "--group", "app", "--version", "v1alpha1", "--kind", "Greeting"],
            &[
                "create",
                "api",
                "--group",
                "app",
                "--version",
                "v1alpha1",
                "--kind",
                "Note",
                "--reconciler",
                "ts",
            ],
        ],
    ),
    (
        "go-multigroup",
        &[
            &["init", "--plugins", "go/v4", "--project-name", "greeter", "--multigroup"],
            &["create", "api", "--group", "app", "--version", "v1", "--kind", "Greeting"],
            &[
                "create",
                "api",
                "--group",
                "ops.eu",
                "--version",
                "v1beta1",
                "--kind",
                "Box",
                "--namespaced=false",
            ],
        ],
    ),
];

fn make(root: &Path, commands: &[&[&str]]) {
    let chart = chart();
    for command in commands {
        let args: Vec<&str> =
            command.iter().map(|word| if *word == "CHART" { chart.as_str() } else { word }).collect();
        done(root, &args);
    }
}

#[test]
fn the_files_of_each_project() {
    for (name, commands) in PROJECTS {
        let folder = scratch();
        make(folder.path(), commands);
        let got = tree(folder.path());
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/scaffold/{name}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(golden.parent().unwrap()).unwrap();
            fs::write(&golden, &got).unwrap();
        }
        let wanted = fs::read_to_string(&golden).unwrap_or_default();
        assert!(
            got == wanted,
            "{} differs; UPDATE_GOLDEN=1 writes it anew. It is now:\n{got}",
            golden.display()
        );
        assert!(!got.contains("@KIND@") && !got.contains("@PROJECT@"), "a placeholder was left in {name}");
    }
}

/// The kind's sample is applied, and the first reconcile does what it should.
async fn runs(commands: &[&[&str]], sample: &str, outcome: Outcome) {
    run_samples(commands, &[(sample, outcome)]).await;
}

async fn run_samples(commands: &[&[&str]], samples: &[(&str, Outcome)]) {
    let embedded = Choice { embedded: true, ..Choice::default() };
    let mut running = Opdev::start_against(embedded, |root| {
        for part in ["charts", "config", "samples"] {
            fs::remove_dir_all(root.join(part)).unwrap();
        }
        make(root, commands);
    })
    .await;
    let failed = |event: &Event| match event {
        Event::ReloadFailed(failure) => Some(format!("{failure:?}")),
        _ => None,
    };
    assert_eq!(running.since(0).iter().find_map(failed), None);
    for (sample, outcome) in samples {
        let mark = running.mark();
        running.ask(ObjectTask::Apply { path: format!("config/samples/{sample}") }).await;
        running.reconcile("the sample's first pass", mark, |reconcile| reconcile.outcome == *outcome).await;
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scaffolded_chart_project_installs_its_sample() {
    runs(PROJECTS[0].1, "cache_v1alpha1_memcached.yaml", Outcome::Installed).await;
    runs(PROJECTS[1].1, "web_v1_site.yaml", Outcome::Installed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scaffolded_type_makes_its_config_map() {
    runs(PROJECTS[2].1, "app_v1alpha1_greeting.yaml", Outcome::Applied).await;
    runs(PROJECTS[3].1, "app_v1alpha1_greeting.yaml", Outcome::Applied).await;
    runs(PROJECTS[3].1, "ops_v1_note.yaml", Outcome::Applied).await;
}

/// A chart and what stands beside it, in either order, are reconciled by one operator.
#[tokio::test(flavor = "multi_thread")]
async fn both_halves_of_a_scaffolded_hybrid_project_run() {
    for (commands, chart, beside) in [
        (PROJECTS[4].1, "cache_v1alpha1_memcached.yaml", "cache_v1alpha1_backup.yaml"),
        (shipped::TEMPLATES_BESIDE_A_CHART, "cache_v1_cache.yaml", "cache_v1_backup.yaml"),
        (shipped::CHART_BESIDE_TYPES, "app_v1alpha1_memcached.yaml", "app_v1_greeting.yaml"),
    ] {
        run_samples(commands, &[(chart, Outcome::Installed), (beside, Outcome::Applied)]).await;
    }
}

#[test]
fn a_scaffolded_type_is_what_the_generators_make_of_it() {
    for (name, commands) in [PROJECTS[2], PROJECTS[3]] {
        let folder = scratch();
        make(folder.path(), commands);
        let output = opdev(folder.path(), &["crd", "--check"]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// The rules that `opdev init` has found for a chart, and those the user adds, are more than the chart
/// creates with its default values.
#[test]
fn no_target_of_the_makefile_takes_rules_away() {
    let charts = scratch();
    make(charts.path(), PROJECTS[0].1);
    let makefile = fs::read_to_string(charts.path().join("Makefile")).unwrap();
    assert!(!makefile.contains("$(OPDEV) rbac"), "{makefile}");
    // A project of types whose second kind has a chart: the roles of both.
    let types = scratch();
    make(types.path(), PROJECTS[2].1);
    let page =
        ["create", "api", "--group", "app", "--version", "v1", "--kind", "Page", "--reconciler", "chart"];
    done(types.path(), &page);
    let makefile = fs::read_to_string(types.path().join("Makefile")).unwrap();
    assert!(
        makefile.contains("\t$(OPDEV) rbac $(if $(wildcard watches.yaml),--from-charts)\n"),
        "{makefile}"
    );
    done(types.path(), &["rbac", "--from-charts"]);
    let role = fs::read_to_string(types.path().join("config/rbac/role.yaml")).unwrap();
    for resource in ["greetings", "pages", "configmaps", "deployments", "services"] {
        assert!(role.contains(&format!("  - {resource}\n")), "{resource}: {role}");
    }
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn kustomize_builds_every_project() {
    for (name, commands) in PROJECTS {
        let folder = scratch();
        make(folder.path(), commands);
        for part in ["config/default", "config/samples", "config/manifests", "config/network-policy"] {
            let output = Command::new(crate::oracle::oracle("kubectl"))
                .args(["kustomize", part])
                .current_dir(folder.path())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{name} {part}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(
                part != "config/default" || text.contains("kind: CustomResourceDefinition"),
                "{name}: {text}"
            );
        }
    }
}

/// The process is killed when so many of its files are there; the same command afterwards makes the whole
/// project.
#[test]
fn a_killed_init_leaves_the_old_or_the_new_project() {
    let whole = scratch();
    let args = ["init", "--project-name", "a", "--group", "web", "--version", "v1", "--kind", "Site"];
    done(whole.path(), &args);
    let (wanted, count) = (tree(whole.path()), files(whole.path()).len());
    for seen in [1, 2, 5, 11, 17, 29, count - 1] {
        let folder = scratch();
        let mut child = Command::new(env!("CARGO_BIN_EXE_opdev"))
            .args(args)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while files(folder.path()).len() < seen && child.try_wait().unwrap().is_none() {}
        _ = child.kill();
        child.wait().unwrap();
        if tree(folder.path()) != wanted {
            let dry = opdev(folder.path(), &[&args[..], &["--dry-run"]].concat());
            let said = done(folder.path(), &args);
            let told = said.contains("was ended here in the middle");
            assert_eq!(dry.status.success(), !told, "{said}");
        }
        assert_eq!(tree(folder.path()), wanted, "after {seen} files");
    }
}

#[test]
fn half_a_project_is_not_run() {
    let folder = scratch();
    let args = ["init", "--project-name", "a", "--group", "web", "--version", "v1", "--kind", "Site"];
    done(folder.path(), &args);
    fs::write(folder.path().join(".opdev-unfinished.json"), "{}").unwrap();
    let run = opdev(folder.path(), &["run", "--embedded", "--plain"]);
    let told = String::from_utf8(run.stderr).unwrap();
    assert!(!run.status.success(), "{told}");
    expect![[r#"
        error: TMP is half written: `opdev init` or `opdev create api` was ended in the middle
          to do: run that command once more; it takes back what was written and begins anew
    "#]]
    .assert_eq(&masked(&told));
}

#[test]
fn a_dry_run_writes_nothing_and_shows_all() {
    let folder = scratch();
    let text = done(folder.path(), &["init", "--dry-run", "--helm-chart", &chart()]);
    assert!(
        text.contains("+++ b/PROJECT") && text.contains("+++ b/helm-charts/memcached/Chart.yaml"),
        "{text}"
    );
    assert!(files(folder.path()).is_empty());
}

/// The list of files is longer than a small terminal.
#[test]
fn warnings_stand_at_the_end_of_the_list_of_files() {
    let folder = scratch();
    let chart = folder.path().join("web");
    fs::create_dir_all(chart.join("templates")).unwrap();
    fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 0.1.0\n").unwrap();
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n";
    fs::write(chart.join("templates/a.yaml"), widget).unwrap();
    let command = format!("{} init --project-name a --helm-chart web 2>&1", env!("CARGO_BIN_EXE_opdev"));
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let mut lines = said.lines().rev();
    assert!(lines.next().unwrap().starts_with("Next: "), "{said}");
    assert!(lines.next().unwrap().starts_with("warning: the chart creates kinds"), "{said}");
    assert!(lines.all(|line| line.starts_with("created ")), "{said}");
}

#[test]
fn json_says_what_became_of_each_file() {
    let folder = scratch();
    fs::write(folder.path().join(".gitignore"), "mine\n").unwrap();
    let project = [
        "init",
        "--output",
        "json",
        "--project-name",
        "a",
        "--kind",
        "Site",
        "--group",
        "web",
        "--version",
        "v1",
    ];
    let output = opdev(folder.path(), &project);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = said["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["path"] == "watches.yaml" && file["action"] == "created"), "{said}");
    assert!(files.iter().all(|file| file["path"] != ".gitignore"), "{said}");
    assert_eq!(fs::read_to_string(folder.path().join(".gitignore")).unwrap(), "mine\n");
}

#[test]
fn what_is_there_is_never_lost() {
    let folder = scratch();
    make(folder.path(), PROJECTS[1].1);
    let before = tree(folder.path());
    // This API exists by now.
    let again = ["create", "api", "--group", "web", "--version", "v1", "--kind", "Site"];
    expect![[r#"
        error: the API resource already exists; --force writes its files anew
    "#]]
    .assert_eq(&refused(folder.path(), &again));
    // A second project in the folder.
    let error = refused(folder.path(), &["init"]);
    expect![[r#"
        error: PROJECT exists: this folder is a project already. `opdev create api` adds a kind to it; --project DIR names another folder
    "#]]
    .assert_eq(&error);
    // A sample that the user wrote for a kind that is not listed yet.
    let sample = folder.path().join("config/samples/web_v1_page.yaml");
    fs::write(&sample, "mine: true\n").unwrap();
    let page = ["create", "api", "--group", "web", "--version", "v1", "--kind", "Page"];
    let error = refused(folder.path(), &page);
    expect![[r#"
        error: nothing was written, because this file is there with other content, or cannot be read as text:
          config/samples/web_v1_page.yaml
        Move it away; --force replaces the ones that can be read
    "#]]
    .assert_eq(&error);
    let dry = [&page[..], &["--dry-run"]].concat();
    // A dry run says what a run would.
    expect![[r#"
        error: nothing was written, because this file is there with other content, or cannot be read as text:
          config/samples/web_v1_page.yaml
        Move it away; --force replaces the ones that can be read
    "#]]
    .assert_eq(&refused(folder.path(), &dry));
    fs::remove_file(&sample).unwrap();
    assert_eq!(tree(folder.path()), before);
    // Another group needs a word in PROJECT.
    let other = ["create", "api", "--group", "shop", "--version", "v1", "--kind", "Cart"];
    expect![[r#"
        error: multiple groups are not allowed by default, to enable multi-group set 'multigroup: true' in your PROJECT file
    "#]]
    .assert_eq(&refused(folder.path(), &other));
    // A marker that somebody removed.
    let watches = folder.path().join("watches.yaml");
    let text = fs::read_to_string(&watches).unwrap().replace("# +kubebuilder:scaffold:watch\n", "");
    fs::write(&watches, text).unwrap();
    let said = done(folder.path(), &page);
    assert!(said.contains("warning: watches.yaml has no line"), "{said}");
    assert!(fs::read_to_string(&watches).unwrap().contains("kind: Page"));
}

/// As somebody does it who has nothing but a chart, in its repository.
#[test]
fn a_chart_folder_becomes_a_project() {
    let folder = scratch();
    make_chart(folder.path());
    let error = refused(folder.path(), &["run", "--embedded"]);
    expect![[r#"
        error: no operator project in TMP or above it
          looked for: opdev.yaml, watches.yaml, PROJECT with api/, a go.mod with controller-runtime, config/types
          to do:
            opdev run --project DIR           where DIR has one of them
            opdev init --helm-chart .         makes an operator of the chart in this folder
    "#]]
    .assert_eq(&masked(&error));
    done(folder.path(), &["init", "--helm-chart", "."]);
    let there = |path: &str| folder.path().join(path).exists();
    assert!(there("helm-charts/web/templates/map.yaml") && there("templates/map.yaml"));
    assert!(!there("helm-charts/web/.git"));
    assert!(there("config/samples/charts_v1alpha1_web.yaml"));
}

fn make_chart(folder: &Path) {
    fs::create_dir_all(folder.join("templates")).unwrap();
    fs::create_dir_all(folder.join(".git")).unwrap();
    fs::write(folder.join(".git/config"), "").unwrap();
    fs::write(folder.join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 0.1.0\n").unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n";
    fs::write(folder.join("templates/map.yaml"), map).unwrap();
}

/// A project of types has no releases, so its operator reads no Secrets.
#[test]
fn only_charts_need_secrets() {
    let secrets = |commands: &[&[&str]]| {
        let folder = scratch();
        make(folder.path(), commands);
        fs::read_to_string(folder.path().join("config/rbac/role.yaml"))
            .unwrap()
            .matches("  - secrets\n")
            .count()
    };
    assert_eq!(secrets(PROJECTS[2].1), 0);
    assert_eq!(secrets(PROJECTS[4].1), 1);
}

/// `make manifests` of the scaffold writes the role anew: nothing that `init` found may be missing then.
#[test]
fn the_role_that_is_written_anew_allows_what_init_allowed() {
    let folder = scratch();
    make(folder.path(), PROJECTS[0].1);
    // The autoscaler of the chart is off by default.
    let of_init = fs::read_to_string(folder.path().join("config/rbac/role.yaml")).unwrap();
    let again = done(folder.path(), &["rbac", "--from-charts", "-o", "-"]);
    for resource in ["deployments", "services", "serviceaccounts", "horizontalpodautoscalers", "secrets"] {
        let rule = format!("  - {resource}\n");
        assert!(of_init.contains(&rule) && again.contains(&rule), "{resource}: {again}");
    }
}

#[test]
fn run_in_an_empty_folder_or_beside_a_chart_offers_a_project() {
    let answered = |folder: &Path, answer: &str| {
        let mut command = portable_pty::CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
        command.args(["run", "--embedded"]);
        command.cwd(folder);
        command.env("HOME", folder.parent().unwrap());
        let mut pty = crate::pty::Pty::start(command, (120, 40));
        pty.wait_for("Press enter to run that now");
        pty.keys(answer);
        pty
    };
    let folder = scratch();
    let site = folder.path().join("site-operator");
    fs::create_dir(&site).unwrap();
    let mut left = answered(&site, "n\r");
    assert_eq!(left.wait_exit().exit_code(), 1);
    assert!(files(&site).is_empty());
    let mut pty = answered(&site, "\r");
    pty.wait_for("Site");
    pty.wait_for("reconcile");
    pty.keys("q");
    assert!(pty.wait_exit().success());
    assert!(site.join("helm-charts/site/Chart.yaml").is_file() && site.join("PROJECT").is_file());

    let holder = folder.path().join("cache-operator");
    fs::create_dir(&holder).unwrap();
    done(&holder, &["init", "--project", "made", "--helm-chart", &chart()]);
    fs::rename(holder.join("made/helm-charts/memcached"), holder.join("memcached")).unwrap();
    fs::remove_dir_all(holder.join("made")).unwrap();
    let mut pty = answered(&holder, "\r");
    pty.wait_for("Memcached");
    pty.keys("q");
    assert!(pty.wait_exit().success());
    assert!(holder.join("helm-charts/memcached/Chart.yaml").is_file());
}

#[test]
fn a_long_kind_leaves_its_chart_room_in_labels() {
    let folder = tempfile::tempdir().unwrap();
    let kind = format!("A{}", "b".repeat(39));
    done(folder.path(), &["init", "--project-name", "a", "--group", "a", "--version", "v1", "--kind", &kind]);
    let sample = folder.path().join(format!("config/samples/a_v1_{}.yaml", kind.to_lowercase()));
    assert!(fs::read_to_string(sample).unwrap().contains("\n  name: sample\n"));
}
