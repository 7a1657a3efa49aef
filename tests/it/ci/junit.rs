//! JUnit reports as other programs read them: valid against the schema beside this file, with counts that are
//! right.

use super::{ci, demo_project, told, with_steps};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The errors that xmllint finds in a report.
fn faults(report: &Path) -> String {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/ci/junit.xsd");
    let judged =
        Command::new("xmllint").args(["--noout", "--nonet", "--schema"]).arg(schema).arg(report).output();
    match judged {
        Ok(output) if output.status.success() => String::new(),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => panic!("xmllint is missing; the package libxml2-utils has it: {error}"),
    }
}

/// The counts of a report, by its own words and by its elements.
fn counts(report: &str) -> [[usize; 2]; 3] {
    let head = report.lines().find(|line| line.starts_with("<testsuites ")).unwrap();
    let said = |name: &str| {
        let value = head.split_once(&format!(" {name}=\"")).unwrap().1;
        value.split('"').next().unwrap().parse().unwrap()
    };
    let are = |element: &str| report.matches(&format!("<{element} ")).count();
    [("tests", "testcase"), ("failures", "failure"), ("errors", "error")]
        .map(|(name, element)| [said(name), are(element)])
}

#[test]
#[cfg_attr(not(xmllint), ignore = "needs xmllint")]
fn reports_are_valid_whatever_has_happened() {
    let (_folder, root, steps) = with_steps();
    let report = root.join("junit.xml");
    let valid = |args: &[&str], code: i32, wanted: [usize; 3]| {
        let output = ci(&root, &[args, &["--junit", "junit.xml", "--timeout", "5s"]].concat());
        assert_eq!(output.status.code(), Some(code), "{}", told(&output));
        let text = fs::read_to_string(&report).unwrap();
        assert_eq!(counts(&text), wanted.map(|count| [count, count]), "{text}");
        assert_eq!(faults(&report), "", "{text}");
        text
    };
    valid(&["tests/e2e/memcached", "samples/memcached.yaml"], 0, [10, 0, 0]);
    valid(&["--filter", "no such sample", "--allow-empty"], 0, [0, 0, 0]);
    // A message with all that XML takes for its own, and what it has no place for.
    let path = steps.join("01-assert.yaml");
    let good = fs::read_to_string(&path).unwrap();
    let labels = "  labels:\n    a: \"<b> & \\\"c\\\" ]]> \\u0001 \\t é 😀 \\uFFFF\"\nstatus:";
    fs::write(&path, good.replacen("status:", labels, 1)).unwrap();
    let failed = valid(&["tests/e2e/memcached"], 1, [2, 1, 0]);
    assert!(failed.contains("&lt;b&gt; &amp; "), "{failed}");
    // A test that cannot begin is an error.
    fs::write(
        steps.join("03-run.yaml"),
        "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\ncommands: [{script: 'a < b'}]\n",
    )
    .unwrap();
    valid(&["tests/e2e/memcached", "samples/hello.yaml"], 3, [8, 0, 1]);
}

#[test]
#[cfg_attr(not(xmllint), ignore = "needs xmllint")]
fn the_schema_refuses_what_is_no_report() {
    let (folder, root) = demo_project();
    let output = ci(&root, &["samples/hello.yaml", "--junit", "junit.xml"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let good = fs::read_to_string(root.join("junit.xml")).unwrap();
    for (from, to) in [
        (" tests=\"7\"", " tests=\"five\""),
        ("<properties>", "<property name=\"a\" value=\"b\"/><properties>"),
        (" classname=\"samples/hello.yaml\"", ""),
        ("  </testsuite>", "    <testcase name=\"a\" classname=\"b\" time=\"1,000.5\"/>\n  </testsuite>"),
        (
            "  </testsuite>",
            "    <testcase name=\"a\" classname=\"b\" time=\"1\"><failure message=\"\"/></testcase>\n  </testsuite>",
        ),
        (
            "  </testsuite>",
            "    <testcase name=\"a\" classname=\"b\" time=\"1\"><skipped/><failure message=\"c\"/></testcase>\n  </testsuite>",
        ),
        ("</testsuites>", ""),
    ] {
        assert!(good.contains(from), "{good}");
        let path = folder.path().join("other.xml");
        fs::write(&path, good.replacen(from, to, 1)).unwrap();
        assert_ne!(faults(&path), "", "{from} → {to}");
    }
}
