//! `opdev render` against golden text and, where they are at hand, against the real Helm 3 and 4.
//! A case is a file `tests/golden/render/CHART/NAME.values.yaml`; `UPDATE_GOLDEN=1` writes what opdev prints.
//! What an older release prints has a file of its own only where it differs.

use crate::oracle::{newest_helm, oracle};
use expect_test::expect;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A chart with one set of values.
struct Case {
    chart: PathBuf,
    values: PathBuf,
    name: String,
}

fn cases() -> Vec<Case> {
    let mut found = Vec::new();
    for folder in fs::read_dir(root().join("tests/golden/render")).unwrap() {
        let folder = folder.unwrap().path();
        let chart = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let places = ["charts", "tests/golden/charts"];
        let place = places.iter().map(|place| root().join(place).join(&chart)).find(|path| path.is_dir());
        for file in fs::read_dir(&folder).unwrap() {
            let values = file.unwrap().path();
            let file_name = values.file_name().unwrap().to_str().unwrap().to_owned();
            if let Some(set) = file_name.strip_suffix(".values.yaml") {
                let chart_path = place.clone().unwrap_or_else(|| panic!("no chart {chart}"));
                found.push(Case { chart: chart_path, name: format!("{chart}/{set}"), values });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() >= 20, "{} cases", found.len());
    found
}

fn arguments(case: &Case) -> Vec<String> {
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    [
        "rel",
        &path(&case.chart),
        "-n",
        "ns",
        "--kube-version",
        "v1.33.4",
        "--include-crds",
        "-f",
        &path(&case.values),
    ]
    .map(str::to_owned)
    .to_vec()
}

fn opdev(arguments: &[String], helm: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_opdev"))
        .arg("render")
        .args(arguments)
        .args(["--helm-compat", helm])
        .output()
        .unwrap()
}

fn text(output: &Output, name: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn every_value_set_renders_as_recorded() {
    for case in cases() {
        for (newest, older) in [("3", "3.19"), ("4", "4.1")] {
            let [new, old] = [newest, older].map(|helm| text(&opdev(&arguments(&case), helm), &case.name));
            let file =
                |helm: &str| root().join("tests/golden/render").join(format!("{}.helm{helm}.out", case.name));
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                fs::write(file(newest), &new).unwrap();
                if new == old {
                    _ = fs::remove_file(file(older));
                } else {
                    fs::write(file(older), &old).unwrap();
                }
                continue;
            }
            let wanted = fs::read_to_string(file(newest)).unwrap_or_default();
            assert_same(&new, &wanted, &format!("{} as Helm {newest}", case.name));
            let wanted = fs::read_to_string(file(older)).unwrap_or(wanted);
            assert_same(&old, &wanted, &format!("{} as Helm {older}", case.name));
        }
    }
}

/// The differences of Helm 4.2 and newer from 4.1: nulls of charts, ends of documents, durations, empty
/// files, versions.
#[test]
fn the_newest_helm_4_prints_what_was_recorded_of_it() {
    let folder = root().join("tests/golden/newest_helm");
    // So deep that `opdev ci` of this repository, which renders as Helm 3, does not find it.
    let chart = folder.join("helm/v4.3/chart").to_str().unwrap().to_owned();
    let wanted = fs::read_to_string(folder.join("helm4.3.1.out")).unwrap();
    assert_same(&text(&opdev(&["release-name".to_owned(), chart.clone()], "4"), "newest"), &wanted, "newest");
    if let Some(helm) = newest_helm() {
        let real = Command::new(helm).args(["template", &chart]).output().unwrap();
        assert_same(&text(&real, "newest"), &wanted, "the real Helm 4.3.1");
    }
    let older = opdev(&[chart], "4.1");
    let said = String::from_utf8_lossy(&older.stderr).into_owned();
    expect![[r#"
        Error: parse error at (one/templates/a.yaml:4): function "durationSeconds" not defined
        hint: did you mean the function `durationRound`?
    "#]]
    .assert_eq(&said);
    let one = |template, helm| one_template(template, &[], helm);
    let long = one("a: {{ mustToDuration \"1e12\" }}", "4").unwrap_err();
    expect![[r#"
        Error: template: one/templates/a.yaml:1:6: executing "one/templates/a.yaml" at <mustToDuration "1e12">: error calling mustToDuration: duration seconds overflow: 1e+12
    "#]]
    .assert_eq(&long);
    let nothing = one("a: {{ mustToDuration nil }}", "4").unwrap_err();
    expect![[r#"
        Error: template: one/templates/a.yaml:1:6: executing "one/templates/a.yaml" at <mustToDuration nil>: error calling mustToDuration: invalid duration
    "#]]
    .assert_eq(&nothing);
    let ends = "a: |+\n  b\n\n\n---\nc: d\n";
    assert!(one(ends, "4").unwrap().contains("a: |+\n  b\n\n\n\n---\n"));
    expect![[r#"
        ---
        # Source: one/templates/a.yaml
        a: |+
          b
        ---
        # Source: one/templates/a.yaml
        c: d
    "#]]
    .assert_eq(&one(ends, "4.1").unwrap());
    let version = "v: {{ .Capabilities.KubeVersion }}";
    let versions = ["3.19", "3", "4.1", "4"]
        .map(|helm| one(version, helm).unwrap().trim().rsplit(' ').next().unwrap().to_owned());
    assert_eq!(versions, ["v1.34.0", "v1.37.0", "v1.35.0", "v1.37.0"]);
    let lines = "a: {{ .Files.Lines \"templates/a.yaml\" | len }} {{ eq 1 \"a\" }}";
    expect![[r#"
        Error: template: one/templates/a.yaml:1:50: executing "one/templates/a.yaml" at <eq 1 "a">: error calling eq: incompatible types for comparison
    "#]]
    .assert_eq(&one(lines, "3.19").unwrap_err());
    expect![[r#"
        Error: template: one/templates/a.yaml:1:50: executing "one/templates/a.yaml" at <eq 1 "a">: error calling eq: incompatible types for comparison: int and string
    "#]]
    .assert_eq(&one(lines, "3").unwrap_err());
}

/// Compares line by line, so that a failure shows the first difference.
fn assert_same(got: &str, wanted: &str, name: &str) {
    for (number, (got, wanted)) in got.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(got, wanted, "{name}, line {}", number + 1);
    }
    assert_eq!(got, wanted, "{name}");
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn every_value_set_renders_as_real_helm_does() {
    for case in cases() {
        let measured = [("3.19", oracle("helm3")), ("4.1", oracle("helm4"))];
        let newest = newest_helm().map(|helm| ("4", helm));
        for (helm, program) in measured.into_iter().chain(newest) {
            let wanted = Command::new(program).arg("template").args(arguments(&case)).output().unwrap();
            let wanted = text(&wanted, &case.name);
            let got = text(&opdev(&arguments(&case), helm), &case.name);
            assert_same(&got, &wanted, &format!("{} as Helm {helm}", case.name));
        }
    }
}

/// The output of a chart with one template, or the error.
fn one_template(template: &str, more: &[&str], helm: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("templates")).unwrap();
    fs::write(folder.path().join("Chart.yaml"), "apiVersion: v2\nname: one\nversion: 0.1.0\n").unwrap();
    fs::write(folder.path().join("templates/a.yaml"), template).unwrap();
    let mut arguments = vec![folder.path().to_str().unwrap().to_owned()];
    arguments.extend(more.iter().map(|&argument| argument.to_owned()));
    let output = opdev(&arguments, helm);
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    if output.status.success() { Ok(text(&output, "one")) } else { Err(said) }
}

/// Most files of a chart are read only when a template or a flag asks for them.
#[test]
fn files_are_read_when_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, data: &[u8]| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, data).unwrap();
    };
    let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n");
    write("Chart.yaml", chart("one").as_bytes());
    write("charts/sub/Chart.yaml", chart("sub").as_bytes());
    write("charts/sub/values.yaml", b"\xef\xbb\xbfa: 1\n");
    write("charts/sub/notes.txt", b"\xef\xbb\xbfof sub\n");
    write("charts/sub/templates/a.yaml", b"a: {{ .Values.a }}\nn: {{ .Files.Get \"notes.txt\" | trim }}\n");
    write("crds/b.yaml", b"\xef\xbb\xbfb: 1\n");
    write("conf/x.txt", b"x");
    write("templates/c.yaml", b"{{ (.Files.Glob \"c*/*\").AsConfig }}\n");
    let (files, unread) = opdev_helm::chart::read_dir_late(folder.path()).unwrap();
    let late = |path: &str| format!("{:?}", files.get(path).unwrap()) == "Late";
    assert!(["charts/sub/notes.txt", "crds/b.yaml", "conf/x.txt"].into_iter().all(late));
    assert!(!["Chart.yaml", "charts/sub/values.yaml", "charts/sub/templates/a.yaml"].into_iter().any(late));
    let run = |more: &[&str], helm: &str| {
        let mut arguments = vec!["rel".to_owned(), folder.path().to_str().unwrap().to_owned()];
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        opdev(&arguments, helm)
    };
    let sub = "---\n# Source: one/charts/sub/templates/a.yaml\na: 1\nn: of sub\n";
    let wanted = format!("{sub}---\n# Source: one/templates/c.yaml\nb.yaml: |\n  b: 1\nx.txt: x\n");
    let crds = format!("---\n# Source: crds/b.yaml\nb: 1\n\n{wanted}").replace("crds/b", "one/crds/b");
    for helm in ["3", "4.1"] {
        assert_eq!(text(&run(&[], helm), "late"), wanted);
        assert_eq!(text(&run(&["--include-crds"], helm), "late with crds"), crds);
    }
    // A document keeps its end there.
    let [wanted, crds] = [&wanted, &crds].map(|text| text.replace("n: of sub\n", "n: of sub\n\n"));
    assert_eq!(text(&run(&[], "4"), "late"), wanted);
    assert_eq!(text(&run(&["--include-crds"], "4"), "late with crds"), crds);
    // A file that cannot be read any more is reported, and so is one too large, even if nobody asks for it.
    fs::remove_file(folder.path().join("conf/x.txt")).unwrap();
    assert_eq!((unread.failed(), &files.get("crds/b.yaml").unwrap()[..]), (None, &b"b: 1\n"[..]));
    assert!(files.get("conf/x.txt").unwrap().is_empty());
    assert!(unread.failed().unwrap().ends_with("conf/x.txt: No such file or directory (os error 2)"));
    write("conf/large.bin", &[b'x'; (5 << 20) + 1]);
    let said = String::from_utf8(run(&[], "3").stderr).unwrap();
    let large = "chart file \"large.bin\" is larger than the maximum file size 5242880";
    assert!(said.contains(large), "{said}");
}

#[test]
fn values_from_the_command_line() {
    let template = "a: {{ toJson .Values }}\nt: {{ typeOf .Values.n }}\n";
    let arguments =
        ["--set", "n=5,l={x,y},o.p=null,big=1000000", "--set-string", "s=5", "--set-json", r#"j={"k":[1]}"#];
    let got = one_template(template, &arguments, "3").unwrap();
    assert_eq!(
        got,
        "---\n# Source: one/templates/a.yaml\na: {\"big\":1000000,\"j\":{\"k\":[1]},\"l\":[\"x\",\"y\"],\"n\":5,\"o\":{\"p\":null},\"s\":\"5\"}\nt: int64\n"
    );
}

#[test]
fn errors_name_the_place_and_end_with_1() {
    let error = |template: &str| one_template(template, &[], "3").unwrap_err();
    assert_eq!(
        error("a: 1\nb: {{ required \"b is needed\" .Values.b }}\n"),
        "Error: execution error at (one/templates/a.yaml:2:6): b is needed\n"
    );
    assert_eq!(
        error("a: {{ if }}\n"),
        "Error: parse error at (one/templates/a.yaml:1): missing value for if\n"
    );
    assert_eq!(
        error("a: 1\n b: 2\n"),
        "Error: YAML parse error on one/templates/a.yaml: error converting YAML to JSON: yaml: line 2: mapping values are not allowed in this context\n\nUse --debug flag to render out invalid YAML\n"
    );
    expect![[r#"
        Error: template: one/templates/a.yaml:1:13: executing "one/templates/a.yaml" at <.Values.x.y>: nil pointer evaluating interface {}.y
        hint: `.Values.x` is not set: values.yaml has no default for it; set it there, in a values file, the custom resource's spec or with `--set x=…`
    "#]]
    .assert_eq(&error("a: {{ .Values.x.y }}\n"));
    assert_eq!(
        error("a: {{ .Values.image.tag }}\n").lines().skip(1).collect::<Vec<_>>(),
        [
            "hint: `.Values.image` is not set: values.yaml has no default for it; set it there, in a values file, the custom resource's spec or with `--set image=…`"
        ]
    );
    assert!(error("a: {{ qoute 1 }}\n").ends_with("hint: did you mean the function `quote`?\n"));
    let name = one_template("a: 1\n", &["--kube-version", "nonsense"], "3").unwrap_err();
    assert_eq!(name, "Error: invalid kube version 'nonsense': could not parse \"nonsense\" as version\n");
}

#[test]
fn values_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("Chart.yaml"), "apiVersion: v2\nname: one\nversion: 0.1.0\n").unwrap();
    fs::write(path("values.yaml"), "a: 1\nb:\n  c: x\n  d: [1]\n").unwrap();
    fs::write(path("more.yaml"), "b:\n  c: z\n").unwrap();
    let more = path("more.yaml").to_str().unwrap().to_owned();
    let arguments = [folder.path().to_str().unwrap(), "-f", &more, "--set", "b.d[1]=5", "--explain-values"];
    let got = text(&opdev(&arguments.map(str::to_owned), "3"), "explained");
    let wanted = format!(
        "a    1         values.yaml:1\nb.c  \"z\"       -f {more}:2\nb.d  [null,5]  --set b.d[1]=5\n"
    );
    assert_eq!(got, wanted);
}

#[test]
fn show_only_and_no_hooks() {
    let template = "a: 1\n---\nmetadata: {name: h, annotations: {helm.sh/hook: test}}\n";
    let all = one_template(template, &[], "3").unwrap();
    expect![[r#"
        ---
        # Source: one/templates/a.yaml
        a: 1
        ---
        # Source: one/templates/a.yaml
        metadata: {name: h, annotations: {helm.sh/hook: test}}
    "#]]
    .assert_eq(&all);
    let without = one_template(template, &["--no-hooks"], "3").unwrap();
    assert_eq!(without, "---\n# Source: one/templates/a.yaml\na: 1\n");
    let only = one_template(template, &["--no-hooks", "-s", "templates/a.yaml"], "3").unwrap();
    assert_eq!(only, without);
    let missing = one_template(template, &["-s", "templates/b.yaml"], "3").unwrap_err();
    assert_eq!(missing, "Error: could not find template templates/b.yaml in chart\n");
}
