//! Errors about a chart that cannot be had from afar, or a dependency that cannot be resolved: every text, as
//! a reader sees it (`tests/golden/pull/errors.txt`; `UPDATE_GOLDEN=1` writes it anew). Nothing is written by
//! a command that fails.

use super::{Desk, Reply, Shelf, archive, index, on, repository, said, sha256};
use std::fs;
use std::path::Path;

/// The shelf as it is asked, with charts that are right and charts that are wrong.
fn shelf() -> Shelf {
    let shelf = Shelf::open();
    repository(&shelf, "/charts", &["1.0.0", "2.0.0-rc.1"]);
    let whole = archive("web", "1.0.0");
    let digest = sha256(&whole);
    let zeros = "0".repeat(64);
    for (name, reply, digest) in [
        ("digest", Reply::of(whole.clone()), zeros.as_str()),
        ("cut", Reply::of(whole.clone()).cut(), &digest),
        ("gone", Reply::status(404), &digest),
        ("loop", Reply::to("/loop/web-1.0.0.tgz"), &digest),
        ("text", Reply::of("no archive"), ""),
        ("other", Reply::of(archive("evil", "1.0.0")), ""),
        ("login", Reply::status(401), &digest),
    ] {
        let entries = [("web", "1.0.0", "web-1.0.0.tgz", digest)];
        shelf.put(&format!("/{name}/index.yaml"), Reply::of(index(&entries)));
        shelf.put(&format!("/{name}/web-1.0.0.tgz"), reply);
    }
    for (name, text) in [
        ("empty", ""),
        ("unversioned", "entries: {}\n"),
        ("list", "- a\n"),
        ("broken", "entries: [\n"),
        (
            "hollow",
            "apiVersion: v1\nentries:\n  web:\n  - {name: web, version: 1.0.0, apiVersion: v2, urls: []}\n",
        ),
        (
            "holes",
            "apiVersion: v1\nentries:\n  web:\n  -\n  - {name: web, version: x.y, apiVersion: v2, urls: []}\n",
        ),
    ] {
        shelf.put(&format!("/{name}/index.yaml"), Reply::of(text));
    }
    shelf.put("/v2/", Reply::of("{}"));
    shelf.put("/v2/charts/none/tags/list", Reply::of("{\"name\":\"charts/none\",\"tags\":[]}"));
    shelf.put("/v2/charts/text/tags/list", Reply::of("no tags"));
    shelf.put("/v2/charts/web/tags/list", Reply::of("{\"name\":\"charts/web\",\"tags\":[\"1.0.0\"]}"));
    let manifest = "{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\"digest\":\"sha256:0\",\"size\":2},\"layers\":[]}";
    shelf.put("/v2/charts/web/manifests/1.0.0", Reply::of(manifest));
    shelf.put("/v2/charts/locked/tags/list", Reply::status(401));
    shelf
}

/// The fault, and the words after `opdev init --project p`; URL is the server's address, HOST its host.
const CHARTS: &[(&str, &str)] = &[
    ("a server that nobody hears", "--helm-chart web --helm-chart-repo http://127.0.0.1:1"),
    ("a repository without an index", "--helm-chart web --helm-chart-repo URL/nothing"),
    ("an empty index", "--helm-chart web --helm-chart-repo URL/empty"),
    ("an index without a version", "--helm-chart web --helm-chart-repo URL/unversioned"),
    ("an index that is a list", "--helm-chart web --helm-chart-repo URL/list"),
    ("an index that is no YAML", "--helm-chart web --helm-chart-repo URL/broken"),
    ("a version without an address", "--helm-chart web --helm-chart-repo URL/hollow"),
    ("an index whose entries are none", "--helm-chart web --helm-chart-repo URL/holes"),
    ("another protocol", "--helm-chart web --helm-chart-repo ftp://charts.example.com"),
    ("a chart that is not there", "--helm-chart other --helm-chart-repo URL/charts"),
    ("a version that is not there", "--helm-chart web --helm-chart-repo URL/charts --helm-chart-version 9"),
    ("a version that is none", "--helm-chart web --helm-chart-repo URL/charts --helm-chart-version x.y"),
    ("another digest", "--helm-chart web --helm-chart-repo URL/digest"),
    ("a download that is cut", "--helm-chart web --helm-chart-repo URL/cut"),
    ("an archive that is not there", "--helm-chart web --helm-chart-repo URL/gone"),
    ("redirects without an end", "--helm-chart web --helm-chart-repo URL/loop"),
    ("a text for an archive", "--helm-chart web --helm-chart-repo URL/text"),
    ("a login that is missing", "--helm-chart web --helm-chart-repo URL/login"),
    ("a repository that Helm does not know", "--helm-chart stable/web"),
    ("a chart that a known repository does not have", "--helm-chart known/other"),
    ("an archive by its address", "--helm-chart URL/nothing/web.tgz"),
    ("a registry without TLS", "--helm-chart oci://127.0.0.1:1/charts/web --plain-http"),
    ("an image that is not there", "--helm-chart oci://HOST/charts/gone --plain-http"),
    ("an image without tags", "--helm-chart oci://HOST/charts/none --plain-http"),
    ("a list of tags that is none", "--helm-chart oci://HOST/charts/text --plain-http"),
    ("no tag that fits", "--helm-chart oci://HOST/charts/web --helm-chart-version ^3 --plain-http"),
    ("two versions", "--helm-chart oci://HOST/charts/web:1.0.0 --helm-chart-version 2.0.0 --plain-http"),
    ("an image that is no chart", "--helm-chart oci://HOST/charts/web:1.0.0 --plain-http"),
    ("a registry that wants a login", "--helm-chart oci://HOST/charts/locked --plain-http"),
    ("a reference without a name", "--helm-chart oci://HOST"),
    ("a reference with a wrong tag", "--helm-chart oci://HOST/charts/web:a/b"),
    ("a reference with a short digest", "--helm-chart oci://HOST/charts/web@sha256:12"),
    (
        "a file of certificates that is none",
        "--helm-chart web --helm-chart-repo URL/charts --ca-file app/Chart.yaml",
    ),
    (
        "a file of certificates that is not there",
        "--helm-chart web --helm-chart-repo URL/charts --ca-file none.pem",
    ),
];

/// The fault, the dependencies of the chart `app`, and the command.
const DEPENDENCIES: &[(&str, &str, &str)] = &[
    ("no repository, and nothing in charts/", "- {name: web, version: 1.0.0}", "update app"),
    ("an unknown alias", "- {name: web, version: 1.0.0, repository: \"@none\"}", "update app"),
    (
        "a folder that is not there",
        "- {name: web, version: 1.0.0, repository: \"file://../none\"}",
        "update app",
    ),
    (
        "a folder with another version",
        "- {name: near, version: 9.0.0, repository: \"file://../near\"}",
        "update app",
    ),
    ("a constraint that is none", "- {name: web, version: x.y, repository: URL/charts}", "update app"),
    ("no version that fits", "- {name: web, version: ^3, repository: URL/charts}", "update app"),
    ("a chart that is not there", "- {name: other, version: 1.0.0, repository: URL/charts}", "update app"),
    (
        "a repository that is not there",
        "- {name: web, version: 1.0.0, repository: URL/nothing}",
        "update app",
    ),
    ("another chart in the archive", "- {name: web, version: 1.0.0, repository: URL/other}", "update app"),
    ("another digest", "- {name: web, version: 1.0.0, repository: URL/digest}", "update app"),
    (
        "an image that is not there",
        "- {name: gone, version: 1.0.0, repository: \"oci://HOST/charts\"}",
        "update app --plain-http",
    ),
    ("a lock that does not fit", "- {name: web, version: ^1, repository: URL/charts}", "build locked"),
    ("a lock that is a link", "- {name: web, version: ^1, repository: URL/charts}", "update linked"),
    ("an archive", "- {name: web, version: ^1, repository: URL/charts}", "update web.tgz"),
    ("no chart", "- {name: web, version: ^1, repository: URL/charts}", "update nothing"),
    ("a folder without a chart", "- {name: web, version: ^1, repository: URL/charts}", "build helm"),
    ("a list of no chart", "- {name: web, version: ^1, repository: URL/charts}", "list helm"),
];

/// The fault in a file of Helm's or Docker's, its path, its text, and the words after
/// `opdev init --project p`.
const FILES: &[(&str, &str, &str, &str)] = &[
    (
        "a list of repositories that is no YAML",
        "helm/repositories.yaml",
        "repositories: [\n",
        "--helm-chart known/web",
    ),
    (
        "a repository without an address",
        "helm/repositories.yaml",
        "apiVersion: \"\"\nrepositories:\n- {name: known, url: \"\"}\n",
        "--helm-chart known/web",
    ),
    ("a cached index that is none", "cache/repository/known-index.yaml", "- a\n", "--helm-chart known/web"),
    (
        "logins that are no JSON",
        "helm/registry/config.json",
        "{",
        "--helm-chart oci://HOST/charts/locked --plain-http",
    ),
    (
        "a keeper of passwords whose name is a path",
        "helm/registry/config.json",
        "{\"credsStore\": \"../x\"}",
        "--helm-chart oci://HOST/charts/locked --plain-http",
    ),
    (
        "a keeper of passwords that is not there",
        "helm/registry/config.json",
        "{\"credHelpers\": {\"HOST\": \"nobody-has-this\"}}",
        "--helm-chart oci://HOST/charts/locked --plain-http",
    ),
];

fn desk(shelf: &Shelf, dependencies: &str) -> Desk {
    let desk = Desk::new(dependencies);
    desk.repositories(&format!("- {{name: known, url: {}/charts}}\n", shelf.url));
    desk.write("near/Chart.yaml", "apiVersion: v2\nname: near\nversion: 0.1.0\n");
    for name in ["locked", "linked"] {
        let own = on(&format!("{}/charts", shelf.url), "^1");
        desk.write(
            &format!("{name}/Chart.yaml"),
            &format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n{own}"),
        );
    }
    desk.write(
        "locked/Chart.lock",
        "dependencies: []\ndigest: sha256:0\ngenerated: \"2024-01-01T00:00:00Z\"\n",
    );
    std::os::unix::fs::symlink("../locked/Chart.lock", desk.path().join("linked/Chart.lock")).unwrap();
    fs::write(desk.path().join("web.tgz"), archive("web", "1.0.0")).unwrap();
    desk
}

/// A command, what it says, and its exit code where that is not 1.
fn told(desk: &Desk, shelf: &Shelf, about: &str, words: &[&str]) -> String {
    let host = format!("127.0.0.1:{}", shelf.port);
    let own: Vec<String> =
        words.iter().map(|word| word.replace("URL", &shelf.url).replace("HOST", &host)).collect();
    let output = desk.opdev(&own.iter().map(String::as_str).collect::<Vec<_>>());
    let here = desk.path().canonicalize().unwrap().display().to_string();
    // The parts that differ from machine to machine.
    let digest = sha256(&archive("web", "1.0.0"));
    let text = said(&output).replace(&digest, "DIGEST").replace("os error 61", "os error 111");
    let text = text.replace(&shelf.url, "URL").replace(&host, "HOST").replace(&here, "FOLDER");
    let code = output.status.code().unwrap();
    assert!(code == 1 || code == 2, "{about}: {text}");
    assert!(!desk.path().join("p").exists() && desk.names().is_empty(), "{about}: something was written");
    let code = if code == 1 { String::new() } else { format!("(exit code {code})\n") };
    format!("# {about}\n$ opdev {}\n{text}{code}\n", words.join(" "))
}

#[test]
fn every_error_of_charts_from_afar_has_its_text() {
    let shelf = shelf();
    let mut got = "## Charts\n\n".to_owned();
    let host = format!("127.0.0.1:{}", shelf.port);
    for (about, words) in CHARTS {
        let words: Vec<&str> = ["init", "--project", "p"].into_iter().chain(words.split(' ')).collect();
        got.push_str(&told(&desk(&shelf, ""), &shelf, about, &words));
    }
    got.push_str("## Files of Helm and Docker\n\n");
    for (about, path, text, words) in FILES {
        let desk = desk(&shelf, "");
        desk.write(path, &text.replace("HOST", &host));
        let words: Vec<&str> = ["init", "--project", "p"].into_iter().chain(words.split(' ')).collect();
        got.push_str(&told(&desk, &shelf, about, &words));
    }
    got.push_str("## Dependencies\n\n");
    for (about, dependency, words) in DEPENDENCIES {
        let wanted = dependency.replace("URL", &shelf.url).replace("HOST", &host);
        let words: Vec<&str> = ["dependency"].into_iter().chain(words.split(' ')).collect();
        got.push_str(&told(&desk(&shelf, &format!("dependencies:\n{wanted}\n")), &shelf, about, &words));
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pull/errors.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(golden.parent().unwrap()).unwrap();
        fs::write(&golden, &got).unwrap();
    }
    let wanted = fs::read_to_string(&golden).unwrap_or_default();
    assert!(got == wanted, "{} differs; UPDATE_GOLDEN=1 writes it anew. It is now:\n{got}", golden.display());
}
