//! Errors of `opdev init` and `opdev create api`: every text, as a reader sees it
//! (`tests/golden/scaffold/errors.txt`; `UPDATE_GOLDEN=1` writes it anew). Nothing is written by a command
//! that fails.

use super::{opdev, scratch, tree};
use std::fs;
use std::path::Path;

/// The fault, the steps before, the files that are there, and the command.
struct Case {
    about: &'static str,
    before: &'static [&'static [&'static str]],
    files: &'static [(&'static str, &'static str)],
    command: &'static [&'static str],
}

const fn case(about: &'static str, command: &'static [&'static str]) -> Case {
    Case { about, before: &[], files: &[], command }
}

impl Case {
    const fn after(self, before: &'static [&'static [&'static str]]) -> Case {
        Case { before, ..self }
    }

    const fn with(self, files: &'static [(&'static str, &'static str)]) -> Case {
        Case { files, ..self }
    }
}

const CHART: &[&str] =
    &["init", "--project-name", "a", "--group", "web", "--version", "v1", "--kind", "Site"];
const TYPES: &[&str] =
    &["init", "--types", "--project-name", "a", "--group", "web", "--version", "v1", "--kind", "Site"];
const GO: &[&str] =
    &["init", "--go", "--project-name", "a", "--group", "web", "--version", "v1", "--kind", "Site"];
const CHART_YAML: &str = "apiVersion: v2\nname: web\nversion: 0.1.0\n";

const NAMES: &[Case] = &[
    case("a project name with blanks", &["init", "--project-name", "My Project"]),
    case("a domain that is none", &["init", "--domain", "_.x"]),
    case("no kind and no chart", &["init", "--group", "web", "--version", "v1"]),
    case("a kind in lower case", &["init", "--group", "web", "--version", "v1", "--kind", "site"]),
    case("a kind with a dot", &["init", "--group", "web", "--version", "v1", "--kind", "Site.x"]),
    case("a version without v", &["init", "--group", "web", "--version", "1", "--kind", "Site"]),
    case("no version", &["init", "--group", "web", "--kind", "Site"]),
    case("a group in upper case", &["init", "--group", "Web", "--version", "v1", "--kind", "Site"]),
    case("neither group nor domain", &["init", "--domain", "", "--version", "v1", "--kind", "Site"]),
    case(
        "a plural that is no name",
        &["init", "--group", "web", "--version", "v1", "--kind", "Site", "--plural", "Sites!"],
    ),
    case("a Go module with a blank", &["init", "--go", "--repo", "a b"]),
    case("a Go module without Go", &["init", "--repo", "example.com/a"]),
    case("a layout that opdev does not have", &["init", "--plugins", "quarkus"]),
    case("a layout named twice", &["init", "--plugins", "helm", "--go"]),
];

const CHARTS: &[Case] = &[
    case("a repository without a chart", &["init", "--helm-chart-repo", "https://charts.example.com"]),
    case("a version without a chart", &["init", "--helm-chart-version", "1.2.3"]),
    case("a path that is not there", &["init", "--helm-chart", "./nothing"]),
    case("a repository that Helm does not know", &["init", "--helm-chart", "stable/web"]),
    case("a folder without a chart", &["init", "--helm-chart", "web"]).with(&[("web/values.yaml", "a: 1\n")]),
    case("a file that is no archive", &["init", "--helm-chart", "web.tgz"]).with(&[("web.tgz", "text")]),
    case("a Chart.yaml that is no YAML", &["init", "--helm-chart", "web"])
        .with(&[("web/Chart.yaml", "name: [\n")]),
    case("a chart without a version", &["init", "--helm-chart", "web"])
        .with(&[("web/Chart.yaml", "apiVersion: v2\nname: web\n")]),
    case("a chart whose name is a path", &["init", "--project-name", "a", "--helm-chart", "web"])
        .with(&[("web/Chart.yaml", "apiVersion: v2\nname: ../web\nversion: 0.1.0\n")]),
    case("a chart whose name makes no kind", &["init", "--project-name", "a", "--helm-chart", "web"])
        .with(&[("web/Chart.yaml", "apiVersion: v2\nname: 1-2\nversion: 0.1.0\n")]),
    case(
        "a schema of values that is no JSON",
        &["init", "--project-name", "a", "--helm-chart", "web", "--crd-schema", "values"],
    )
    .with(&[("web/Chart.yaml", CHART_YAML), ("web/values.schema.json", "{")]),
    case(
        "a schema of values for a script",
        &[
            "init",
            "--types",
            "--project-name",
            "a",
            "--group",
            "web",
            "--version",
            "v1",
            "--kind",
            "Site",
            "--crd-schema",
            "values",
        ],
    ),
    case("a chart for a script", &["create", "api", "--helm-chart", "web", "--reconciler", "ts"])
        .after(&[CHART]),
    case("a user without a password", &["init", "--helm-chart", "web", "--username", "ann"]),
    case(
        "a password that nobody has given",
        &["init", "--helm-chart", "oci://127.0.0.1:1/web", "--username", "ann", "--password-stdin"],
    ),
];

const PRESENT: &[Case] = &[
    case("a project already", &["init"]).after(&[CHART]),
    case("a Makefile", &["init"]).with(&[("Makefile", "all:\n")]),
    case("a Go program", &["init", "--go"]).with(&[("cmd/main.go", "package main\n")]),
    case("a Go module with requirements", &["init", "--go", "--project-name", "a"])
        .with(&[("go.mod", "module example.com/mine\n\ngo 1.25\n\nrequire example.com/x v1.0.0\n")]),
    case("files of the user", CHART)
        .with(&[("Dockerfile", "FROM scratch\n"), ("config/rbac/role.yaml", "mine: true\n")]),
    case("a folder where a file belongs", CHART).with(&[("watches.yaml/x", "")]),
    case("half a project, looked at only", &["init", "--dry-run"]).with(&[(".opdev-unfinished.json", "{}")]),
    case("half a project with a note of somebody else", &["init"]).with(&[(
        ".opdev-unfinished.json",
        "{\"about\":\"\",\"folders\":[],\"files\":[{\"path\":\"../x\",\"sha256\":\"0\"}]}",
    )]),
    case("half a project with a broken note", &["init"]).with(&[(".opdev-unfinished.json", "text")]),
];

const APIS: &[Case] = &[
    case("no project", &["create", "api", "--group", "web", "--version", "v1", "--kind", "Site"]),
    case(
        "a PROJECT that is no YAML",
        &["create", "api", "--group", "web", "--version", "v1", "--kind", "Site"],
    )
    .with(&[("PROJECT", "domain: [\n")]),
    case(
        "a PROJECT with a name that is none",
        &["create", "api", "--group", "web", "--version", "v1", "--kind", "Site"],
    )
    .with(&[("PROJECT", "domain: my.domain\nprojectName: ../x\nversion: \"3\"\n")]),
    case("no kind", &["create", "api", "--group", "web", "--version", "v1", "--reconciler", "ts"])
        .after(&[CHART]),
    case("the same again", &["create", "api", "--group", "web", "--version", "v1", "--kind", "Site"])
        .after(&[CHART]),
    case("another group", &["create", "api", "--group", "shop", "--version", "v1", "--kind", "Cart"])
        .after(&[CHART]),
    case(
        "another version of a chart's kind",
        &["create", "api", "--group", "web", "--version", "v2", "--kind", "Site"],
    )
    .after(&[CHART]),
    case(
        "another version of a controller's kind",
        &["create", "api", "--group", "web", "--version", "v2", "--kind", "Site"],
    )
    .after(&[GO]),
    case(
        "a controller in Go without a Go program",
        &["create", "api", "--group", "web", "--version", "v1", "--kind", "Page", "--reconciler", "go"],
    )
    .after(&[TYPES]),
    case("a sample of the user", &["create", "api", "--group", "web", "--version", "v1", "--kind", "Page"])
        .after(&[CHART])
        .with(&[("config/samples/web_v1_page.yaml", "mine: true\n")]),
    case(
        "a reconciler that opdev does not have",
        &["create", "api", "--kind", "Page", "--reconciler", "python"],
    ),
];

/// These commands do what they are asked for, with a word.
const WARNINGS: &[Case] = &[
    case("a marker that is gone", &["create", "api", "--group", "web", "--version", "v1", "--kind", "Page"])
        .after(&[CHART])
        .with(&[("watches.yaml", "- group: web.my.domain\n  version: v1\n  kind: Site\n  chart: helm-charts/site\n")]),
    case("a PROJECT that operator-sdk does not read", &["create", "api", "--group", "web", "--version", "v1", "--kind", "Page"])
        .with(&[("PROJECT", "domain: my.domain\nlayout:\n- helm.sdk.operatorframework.io/v1\nprojectName: a\nnamespaced: true\nversion: \"3\"\n")]),
    case("a script upon helm-operator", &[
        "create", "api", "--group", "web", "--version", "v1", "--kind", "Page", "--reconciler", "ts",
    ])
    .after(&[CHART]),
    case("a type that nothing reconciles", &[
        "create", "api", "--group", "web", "--version", "v1", "--kind", "Page", "--reconciler", "none",
    ])
    .after(&[TYPES]),
    case("a chart in a Go project", &["create", "api", "--group", "web", "--version", "v1", "--kind", "Page", "--reconciler", "chart"])
        .after(&[GO]),
    case("a chart without its dependencies", &["init", "--project-name", "a", "--helm-chart", "web"]).with(&[(
        "web/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies:\n- {name: db, version: 1.0.0, repository: \"https://charts.example.com\"}\n",
    )]),
    case("a chart that makes what Kubernetes does not have", &["init", "--project-name", "a", "--helm-chart", "web"]).with(&[
        ("web/Chart.yaml", CHART_YAML),
        ("web/templates/a.yaml", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"),
    ]),
    case("a chart that needs a value", &["init", "--project-name", "a", "--helm-chart", "web"]).with(&[
        ("web/Chart.yaml", CHART_YAML),
        ("web/templates/a.yaml", "a: {{ required \"a host is needed\" .Values.host }}\n"),
    ]),
    case("a schema with more than a CRD may say", &["init", "--project-name", "a", "--helm-chart", "web", "--crd-schema", "values"])
        .with(&[
            ("web/Chart.yaml", CHART_YAML),
            (
                "web/values.schema.json",
                "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"b\":{\"const\":1}}},\
                 \"c\":{\"type\":\"object\",\"patternProperties\":{\"^x\":{\"type\":\"string\"}}}}}",
            ),
        ]),
    case("a folder with other files", CHART).with(&[
        (".git/config", ""),
        ("README.md", ""),
        ("LICENSE-MIT", ""),
        ("main.py", ""),
        ("app/x.py", ""),
        ("notes.txt", ""),
        ("setup.py", ""),
    ]),
    case("a chart beside other files", &["init", "--project-name", "a", "--helm-chart", "web"])
        .with(&[("web/Chart.yaml", CHART_YAML), ("notes.txt", "")]),
    case("a chart that is the folder", &["init", "--project-name", "a", "--helm-chart", "."])
        .with(&[("Chart.yaml", CHART_YAML)]),
];

fn told(case: &Case, fails: bool) -> String {
    let folder = scratch();
    for command in case.before {
        assert!(opdev(folder.path(), command).status.success(), "{}", case.about);
    }
    for (path, text) in case.files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let before = tree(folder.path());
    let output = opdev(folder.path(), case.command);
    let here = folder.path().canonicalize().unwrap().display().to_string();
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !fails {
        // The list of files that a command prints is another test's.
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let rest = out.lines().filter(|line| !line.starts_with("created ") && !line.starts_with("updated "));
        rest.for_each(|line| said.push_str(&format!("{line}\n")));
    } else {
        assert_eq!(tree(folder.path()), before, "{}: something was written", case.about);
    }
    assert_eq!(output.status.success(), !fails, "{}: {said}", case.about);
    let said = said
        .replace(&here, "FOLDER")
        .replace(&folder.path().display().to_string(), "FOLDER")
        .replace(name, "NAME");
    let code = output.status.code().unwrap();
    let mut out = format!("# {}\n$ opdev {}\n{said}", case.about, case.command.join(" "));
    if code > 1 {
        out.push_str(&format!("(exit code {code})\n"));
    }
    out + "\n"
}

#[test]
fn every_error_of_init_and_create_has_its_text() {
    let mut got = String::new();
    for (title, cases, fails) in [
        ("Names", NAMES, true),
        ("Charts", CHARTS, true),
        ("What is there already", PRESENT, true),
        ("New kinds", APIS, true),
        ("Warnings", WARNINGS, false),
    ] {
        got.push_str(&format!("## {title}\n\n"));
        cases.iter().for_each(|case| got.push_str(&told(case, fails)));
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/scaffold/errors.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &got).unwrap();
    }
    let wanted = fs::read_to_string(&golden).unwrap_or_default();
    assert!(got == wanted, "{} differs; UPDATE_GOLDEN=1 writes it anew. It is now:\n{got}", golden.display());
}
