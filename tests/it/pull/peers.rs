//! References that opdev, Helm 3 and Helm 4 take: the archives in `charts/` are equal, byte by byte, and so
//! is the lock. A reference that one of them refuses is refused by all.

use super::{Desk, Reply, Shelf, archive, index, sha256};
use crate::oracle::oracle;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A real registry, Debian's `docker-registry`, that wants a login.
pub(crate) struct RealRegistry {
    process: Child,
    pub(crate) host: String,
    _folder: tempfile::TempDir,
}

impl RealRegistry {
    pub(crate) fn start() -> RealRegistry {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = folder.path().display();
        // ann, sesame-77
        let user = "ann:$2b$04$yNLv7KTlR/KmBwKNSuTcke2A7vlbmtqOEOCSBkjR2HoYf3myVE5Cm\n";
        fs::write(folder.path().join("users"), user).unwrap();
        let config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {at}/data}}}}\n\
             http: {{addr: \"127.0.0.1:{port}\"}}\nauth: {{htpasswd: {{realm: r, path: {at}/users}}}}\n"
        );
        fs::write(folder.path().join("config.yml"), config).unwrap();
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(folder.path().join("config.yml"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry is missing: apt-get install docker-registry");
        let host = format!("127.0.0.1:{port}");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while TcpStream::connect(&host).is_err() {
            assert!(std::time::Instant::now() < deadline, "docker-registry does not answer");
            std::thread::yield_now();
        }
        RealRegistry { process, host, _folder: folder }
    }
}

impl Drop for RealRegistry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The repository of all cases, and one that wants a login.
fn fill(shelf: &Shelf) {
    let charts = [
        ("web", "1.0.0"),
        ("web", "1.2.0"),
        ("web", "1.2.3+build.5"),
        ("web", "1.10.0"),
        ("web", "2.0.0-rc.1"),
        ("web", "2.0.0"),
        ("web", "3.0.0-beta.1"),
        ("db", "0.1.0"),
        ("db", "v0.2.0"),
        ("db", "0.2.1"),
    ];
    let rows: Vec<_> = charts
        .iter()
        .map(|(name, version)| {
            let bytes = archive(name, version);
            let file = format!("{name}-{version}.tgz");
            shelf.put(&format!("/files/{file}"), Reply::of(bytes.clone()));
            shelf.put(&format!("/charts/{file}"), Reply::of(bytes.clone()));
            let guarded = Reply::of(bytes.clone()).behind(super::ANN, "Basic realm=x");
            shelf.put(&format!("/guarded/{file}"), guarded);
            (*name, *version, file, sha256(&bytes))
        })
        .collect();
    let listed = |prefix: &str| {
        let urls: Vec<_> = rows.iter().map(|row| format!("{prefix}{}", row.2)).collect();
        let entries: Vec<_> =
            rows.iter().zip(&urls).map(|(row, url)| (row.0, row.1, url.as_str(), row.3.as_str())).collect();
        index(&entries)
    };
    shelf.put("/charts/index.yaml", Reply::of(listed("")));
    shelf.put("/below/index.yaml", Reply::of(listed("../files/")));
    shelf.put("/absolute/index.yaml", Reply::of(listed(&format!("{}/files/", shelf.url))));
    shelf.put("/rooted/index.yaml", Reply::of(listed("/files/")));
    shelf.put("/guarded/index.yaml", Reply::of(listed("")).behind(super::ANN, "Basic realm=x"));
    let json = serde_json::json!({"apiVersion": "v1", "more": 1, "entries": {"web": [
        {"apiVersion": "v2", "name": "web", "version": "1.2.0", "urls": ["/files/web-1.2.0.tgz"]},
        null,
        {"apiVersion": "v2", "name": "web", "version": "no version", "urls": []},
    ]}});
    shelf.put("/json/index.yaml", Reply::of(json.to_string()));
    shelf.put("/typo/index.yaml", Reply::of(listed("").replace("digest:", "digset:")));
    shelf.put("/empty/index.yaml", Reply::of(""));
    shelf.put("/bare/index.yaml", Reply::of("entries: {}\n"));
    shelf.put("/moved/index.yaml", Reply::to("/below/index.yaml"));
    shelf.put("/nowhere/index.yaml", Reply::of(index(&[("web", "1.0.0", "none.tgz", "")])));
    shelf.put("/nourl/index.yaml", Reply::of(listed("").replace("urls: [\"web-2.0.0.tgz\"]", "urls: []")));
}

fn one(name: &str, version: &str, repository: &str) -> String {
    format!("- {{name: {name}, version: {version:?}, repository: {repository:?}}}\n")
}

/// The dependencies of each case.
fn cases(url: &str, host: &str) -> Vec<(&'static str, String)> {
    let charts = format!("{url}/charts");
    let web = |version: &str| one("web", version, &charts);
    let at = |folder: &str| one("web", "^1", &format!("{url}/{folder}"));
    let oci = |version: &str| one("web", version, &format!("oci://{host}/charts"));
    vec![
        ("exact", web("1.2.0")),
        ("caret", web("^1")),
        ("tilde", web("~1.2")),
        ("from and to", web(">=1.0.0 <2")),
        ("open", web("1.x")),
        ("any", web("*")),
        ("any with pre-releases", web(">0-0")),
        ("pre-release", web("2.0.0-rc.1")),
        ("build metadata", web("1.2.3+build.5")),
        ("metadata left out", web("1.2.3")),
        ("range", web("1 - 1.5")),
        ("with v", web("v1.2.0")),
        ("or", web("^1 || ^3")),
        ("not", web("!=2.0.0, <3")),
        ("comma", web(">=1.0.0,<1.10.0")),
        ("v in the index", one("db", "0.2.0", &charts)),
        ("patch after v", one("db", "*", &charts)),
        ("none that fits", web("9")),
        ("no such chart", one("none", "*", &charts)),
        ("no constraint", web("not a version")),
        ("slash at the end", one("web", "^1", &format!("{charts}/"))),
        ("relative addresses", at("below")),
        ("absolute addresses", at("absolute")),
        ("addresses from the root", at("rooted")),
        ("query", one("web", "^1", &format!("{charts}?token=1"))),
        ("JSON", at("json")),
        ("unknown field", at("typo")),
        ("empty index", at("empty")),
        ("index without apiVersion", at("bare")),
        ("no index", at("none")),
        ("moved index", at("moved")),
        ("archive gone", one("web", "*", &format!("{url}/nowhere"))),
        ("entry without address", one("web", "*", &format!("{url}/nourl"))),
        (
            "all fields",
            format!(
                "- {{name: web, version: \"<2 >1.0.0\", repository: {charts:?}, condition: web.enabled, tags: [a, b], alias: front, \
                 import-values: [data, {{parent: p, child: c}}]}}\n"
            ),
        ),
        (
            "two versions of one chart",
            format!(
                "{}- {{name: web, version: ^2, repository: {charts:?}, alias: second}}\n{}",
                web("^1"),
                one("db", "0.1.0", &charts)
            ),
        ),
        ("named", one("web", "^1", "@guarded")),
        ("alias", one("web", "^1", "alias:guarded")),
        ("named by address", one("web", "^1", &format!("{url}/guarded"))),
        ("wrong password", one("web", "^1", "@locked")),
        ("nobody's name", one("web", "^1", "@nobody")),
        ("a word", one("web", "^1", "stable")),
        ("in charts", one("own", "^1", "")),
        ("in charts, another version", one("own", "^2", "")),
        ("not in charts", one("absent", "^2", "")),
        ("folder", one("near", "*", "file://../near")),
        ("folder, another version", one("near", "^9", "file://../near")),
        ("no folder", one("near", "*", "file://../far")),
        ("registry, exact", oci("1.2.0")),
        ("registry, range", oci("^1")),
        ("registry, any", oci("*")),
        ("registry, build metadata", oci("1.2.3+build.5")),
        ("registry, pre-release", oci("2.0.0-rc.1")),
        ("registry, no such tag", oci("1.7.7")),
        ("registry, none that fits", oci("^7")),
        ("registry, no such chart", one("none", "*", &format!("oci://{host}/charts"))),
    ]
}

/// A desk whose Helm knows the repositories and has logged in.
fn desk(dependencies: &str, url: &str, host: &str) -> Desk {
    let desk = Desk::new(&format!("dependencies:\n{dependencies}"));
    // Helm refuses everything where one repository has no index, so each case has the one it needs.
    let (name, password) =
        if dependencies.contains("@locked") { ("locked", "wrong") } else { ("guarded", "sesame-77") };
    desk.repositories(&format!(
        "- {{name: {name}, url: \"{url}/guarded\", username: ann, password: {password}}}\n"
    ));
    desk.write(
        "helm/registry/config.json",
        &format!("{{\"auths\": {{\"{host}\": {{\"auth\": \"YW5uOnNlc2FtZS03Nw==\"}}}}}}"),
    );
    desk.write("app/charts/own/Chart.yaml", "apiVersion: v2\nname: own\nversion: 1.1.0\n");
    desk.write("near/Chart.yaml", "apiVersion: v2\nname: near\nversion: 0.3.0\n");
    desk
}

/// The files that a run leaves; `None` where it failed. The lock's time is its own.
fn left(
    desk: &Desk,
    program: &Path,
    command: &str,
    is_packed: bool,
) -> Option<(Vec<(String, String)>, String)> {
    let output = desk.command(program).args(["dependency", command, "app", "--plain-http"]).output().unwrap();
    if !output.status.success() {
        return None;
    }
    let lock = fs::read_to_string(desk.path().join("app/Chart.lock")).unwrap_or_default();
    let lock: String =
        lock.lines().filter(|line| !line.starts_with("generated:")).collect::<Vec<_>>().join("\n");
    // An archive that is packed here has the time in it.
    let bytes = |bytes: &[u8]| if is_packed { String::new() } else { sha256(bytes) };
    let charts = desk.charts().iter().map(|(name, content)| (name.clone(), bytes(content))).collect();
    Some((charts, lock))
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn references_give_the_same_bytes_and_the_same_lock_as_real_helm() {
    let shelf = Shelf::open();
    fill(&shelf);
    let registry = RealRegistry::start();
    let (url, host) = (shelf.url.as_str(), registry.host.as_str());
    for version in ["1.0.0", "1.2.0", "1.2.3+build.5", "1.10.0", "2.0.0-rc.1", "2.0.0", "3.0.0-beta.1"] {
        let desk = desk("[]\n", url, host);
        fs::write(desk.path().join("web.tgz"), archive("web", version)).unwrap();
        let pushed = desk
            .command(&oracle("helm3"))
            .args(["push", "web.tgz", &format!("oci://{host}/charts"), "--plain-http"])
            .output()
            .unwrap();
        assert!(pushed.status.success(), "{}", super::said(&pushed));
    }
    let programs = [Path::new(env!("CARGO_BIN_EXE_opdev")).to_owned(), oracle("helm3"), oracle("helm4")];
    let (mut wrong, mut worked) = (Vec::new(), 0);
    let cases = cases(url, host);
    assert!(cases.len() > 40);
    for (name, dependencies) in &cases {
        let packed = dependencies.contains("file://");
        let run = |program: &std::path::PathBuf| {
            let desk = desk(dependencies, url, host);
            let updated = left(&desk, program, "update", packed)?;
            // Built again from the lock, it is the same.
            for (file, _) in desk.charts() {
                fs::remove_file(desk.path().join("app/charts").join(file)).unwrap();
            }
            let is_ours = program == &programs[0];
            if is_ours {
                let built = left(&desk, program, "build", packed);
                assert_eq!(built.as_ref(), Some(&updated), "{name}: built from the lock");
            }
            Some(updated)
        };
        let [ours, three, four] = [0, 1, 2].map(|program| run(&programs[program]));
        worked += usize::from(ours.is_some());
        for (helm, theirs) in [("Helm 3", &three), ("Helm 4", &four)] {
            if *theirs != ours {
                wrong.push(format!("{name}, {helm}:\n  theirs {theirs:?}\n  ours   {ours:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(worked > 30, "only {worked} worked");
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn lists_are_those_of_real_helm() {
    let shelf = Shelf::open();
    fill(&shelf);
    let charts = format!("{}/charts", shelf.url);
    let wanted = format!(
        "{}{}{}{}",
        one("web", "^1", &charts),
        one("db", "9", &charts),
        one("own", "^1", ""),
        one("absent", ">=2", "https://a.example/very/long")
    );
    let desk = desk(&wanted, &shelf.url, "none");
    for (name, version) in [("web", "1.2.0"), ("db", "0.1.0"), ("stray", "1.0.0")] {
        let path = desk.path().join("app/charts").join(format!("{name}-{version}.tgz"));
        fs::write(path, archive(name, version)).unwrap();
    }
    let list = |program: &Path| {
        super::said(&desk.command(program).args(["dependency", "list", "app"]).output().unwrap())
    };
    let ours = list(Path::new(env!("CARGO_BIN_EXE_opdev")));
    assert!(ours.contains("wrong version") && ours.contains("is not in Chart.yaml"), "{ours}");
    assert_eq!(ours, list(&oracle("helm3")));
    assert_eq!(ours, list(&oracle("helm4")));
}
