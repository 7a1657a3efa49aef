//! Charts from afar, as a user takes them: repositories, registries, dependencies; what is refused, what is
//! never told. `peers` holds the results against real Helm and a real registry.

mod at_start;
mod errors;
mod peers;
mod proxies;
mod shelf;

use crate::masked::masked;
use expect_test::expect;
use flate2::Compression;
use flate2::write::GzEncoder;
pub(crate) use peers::RealRegistry;
use sha2::{Digest as _, Sha256};
pub(crate) use shelf::{Reply, Shelf};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A chart's archive.
pub(crate) fn archive(name: &str, version: &str) -> Vec<u8> {
    let chart = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {of: {{ .Chart.Version | quote }}}\n";
    packed(&[
        (&format!("{name}/Chart.yaml"), chart.as_bytes()),
        (&format!("{name}/values.yaml"), b"size: 1\n"),
        (&format!("{name}/templates/map.yaml"), map.as_bytes()),
    ])
}

/// An archive of any paths, also of hostile ones.
pub(crate) fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, *content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An index of charts: name, version, address and digest of each archive.
fn index(entries: &[(&str, &str, &str, &str)]) -> String {
    let mut text = "apiVersion: v1\ngenerated: \"2024-01-01T00:00:00Z\"\nentries:\n".to_owned();
    let mut names: Vec<_> = entries.iter().map(|entry| entry.0).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        text.push_str(&format!("  {name}:\n"));
        for (_, version, url, digest) in entries.iter().filter(|entry| entry.0 == name) {
            text.push_str(&format!("  - {{apiVersion: v2, name: {name}, version: {version:?}, urls: [{url:?}], digest: {digest:?}}}\n"));
        }
    }
    text
}

/// Puts a repository with one chart `web` on a shelf.
fn repository(shelf: &Shelf, folder: &str, versions: &[&str]) -> String {
    let names: Vec<String> = versions.iter().map(|version| format!("web-{version}.tgz")).collect();
    let digests: Vec<String> = versions.iter().map(|version| sha256(&archive("web", version))).collect();
    let entries: Vec<_> = versions
        .iter()
        .zip(names.iter().zip(&digests))
        .map(|(version, (name, digest))| ("web", *version, name.as_str(), digest.as_str()))
        .collect();
    shelf.put(&format!("{folder}/index.yaml"), Reply::of(index(&entries)));
    for (version, name) in versions.iter().zip(&names) {
        shelf.put(&format!("{folder}/{name}"), Reply::of(archive("web", version)));
    }
    format!("{}{folder}", shelf.url)
}

/// A folder with a chart `app` of some dependencies, and Helm's files.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new(dependencies: &str) -> Desk {
        let folder = tempfile::Builder::new().prefix("desk-").tempdir().unwrap();
        let desk = Desk { folder };
        desk.write("app/Chart.yaml", &format!("apiVersion: v2\nname: app\nversion: 0.1.0\n{dependencies}"));
        desk
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn repositories(&self, text: &str) {
        self.write("helm/repositories.yaml", &format!("apiVersion: \"\"\nrepositories:\n{text}"));
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("HELM_CONFIG_HOME", self.path().join("helm"))
            .env("HELM_CACHE_HOME", self.path().join("cache"))
            .env("HELM_DATA_HOME", self.path().join("data"))
            .env("NO_PROXY", "*")
            .stdin(Stdio::null());
        for name in
            ["KUBECONFIG", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "DOCKER_CONFIG", "http_proxy", "https_proxy"]
        {
            command.env_remove(name);
        }
        command
    }

    fn opdev(&self, args: &[&str]) -> Output {
        self.command(Path::new(env!("CARGO_BIN_EXE_opdev"))).args(args).output().unwrap()
    }

    fn done(&self, args: &[&str]) -> String {
        let output = self.opdev(args);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        said(&output)
    }

    fn refused(&self, args: &[&str]) -> String {
        let output = self.opdev(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", said(&output));
        said(&output)
    }

    /// The archives in `charts/` with their bytes.
    fn charts(&self) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(self.path().join("app/charts")).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.path().is_file());
        let mut found: Vec<_> = files
            .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
            .collect();
        found.sort();
        found
    }

    fn names(&self) -> Vec<String> {
        self.charts().into_iter().map(|(name, _)| name).collect()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn on(repository: &str, version: &str) -> String {
    format!("dependencies:\n- {{name: web, version: {version:?}, repository: {repository:?}}}\n")
}

#[test]
fn dependencies_are_downloaded_locked_and_built_again() {
    let shelf = Shelf::open();
    let url = repository(&shelf, "/charts", &["1.0.0", "1.2.0", "2.0.0"]);
    let desk = Desk::new(&on(&url, "^1"));
    let out = desk.done(&["dependency", "update", "app"]);
    assert!(out.contains("Getting updates for unmanaged Helm repositories...\n"), "{out}");
    assert!(out.contains(&format!("Downloading web from repo {url}\n")), "{out}");
    assert_eq!(desk.charts(), [("web-1.2.0.tgz".to_owned(), archive("web", "1.2.0"))]);
    let lock = fs::read_to_string(desk.path().join("app/Chart.lock")).unwrap();
    assert!(lock.contains("version: 1.2.0") && lock.contains("generated: \"20"), "{lock}");
    assert!(desk.done(&["render", "app"]).contains("of: \"1.2.0\""));
    // A newer version does not matter to a lock that fits; nor is the lock written again.
    repository(&shelf, "/charts", &["1.0.0", "1.2.0", "1.3.0"]);
    fs::remove_file(desk.path().join("app/charts/web-1.2.0.tgz")).unwrap();
    desk.done(&["dep", "build", "app"]);
    assert_eq!(desk.names(), ["web-1.2.0.tgz"]);
    assert_eq!(fs::read_to_string(desk.path().join("app/Chart.lock")).unwrap(), lock);
    // An update takes the newer one, and the old archive goes.
    desk.write("app/charts/notes.txt", "mine\n");
    let out = desk.done(&["dependency", "update", "app"]);
    assert_eq!(desk.names(), ["notes.txt", "web-1.3.0.tgz"], "{out}");
    desk.write("app/Chart.yaml", &format!("apiVersion: v2\nname: app\nversion: 0.1.0\n{}", on(&url, "^2")));
    let error = desk.refused(&["dependency", "build", "app"]);
    expect![[r#"
        error: the lock file (Chart.lock) is out of sync with the dependencies file (Chart.yaml). Please update the dependencies with 'opdev dependency update'
    "#]]
    .assert_eq(&error);
}

#[test]
fn what_is_wrong_changes_nothing() {
    let shelf = Shelf::open();
    let whole = archive("web", "1.0.0");
    let digest = sha256(&whole);
    let cases: [(&str, Reply, &str, &str); 6] = [
        ("wrong", Reply::of(whole.clone()), "0000", "the index of the repository says 0000"),
        ("cut", Reply::of(whole.clone()).cut(), &digest, "the download was cut"),
        ("gone", Reply::to("/nowhere.tgz"), &digest, "404"),
        ("loop", Reply::to("/loop/web-1.0.0.tgz"), &digest, "stopped after 10 redirects"),
        ("text", Reply::of("no archive"), "", "is no chart: gzip"),
        ("other", Reply::of(archive("evil", "1.0.0")), "", "holds the chart \"evil\", not \"web\""),
    ];
    for (name, reply, digest, part) in cases {
        shelf.put(
            &format!("/{name}/index.yaml"),
            Reply::of(index(&[("web", "1.0.0", "web-1.0.0.tgz", digest)])),
        );
        shelf.put(&format!("/{name}/web-1.0.0.tgz"), reply);
        let desk = Desk::new(&on(&format!("{}/{name}", shelf.url), "*"));
        let error = desk.refused(&["dependency", "update", "app"]);
        assert!(error.contains(part), "{name}: {error}");
        assert!(desk.names().is_empty() && !desk.path().join("app/Chart.lock").exists(), "{name}");
    }
}

#[test]
fn hostile_archives_write_nothing_outside() {
    let shelf = Shelf::open();
    let chart: &[u8] = b"apiVersion: v2\nname: web\nversion: 1.0.0\n";
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    (0..120).for_each(|_| bomb.write_all(&zeros).unwrap());
    let hostile = [
        (
            "parent",
            packed(&[("web/Chart.yaml", chart), ("web/../../../escaped.yaml", b"x")]),
            "parent directory",
        ),
        ("bomb", bomb.finish().unwrap(), "larger than the maximum size"),
        ("bare", packed(&[("Chart.yaml", chart)]), "content outside the base directory: \"Chart.yaml\""),
        ("low", packed(&[("Chart.yaml/x", chart)]), "chart yaml not in base directory"),
        (
            "absolute",
            packed(&[("web/Chart.yaml", chart), ("web//etc/x", b"x")]),
            "chart illegally contains absolute paths",
        ),
        (
            "drive",
            packed(&[("web/Chart.yaml", chart), ("web/c:/x", b"x")]),
            "chart contains illegally named files",
        ),
        (
            "large",
            packed(&[("web/Chart.yaml", chart), ("web/a.txt", &vec![b'a'; 5 * 1024 * 1024 + 1])]),
            "decompressed chart file \"web/a.txt\" is larger than the maximum file size 5242880",
        ),
    ];
    for (name, archive, part) in hostile {
        shelf.put(&format!("/{name}/web-1.0.0.tgz"), Reply::of(archive));
        let desk = Desk::new("");
        let address = format!("{}/{name}/web-1.0.0.tgz", shelf.url);
        let error = desk.refused(&["init", "--project", "p", "--helm-chart", &address]);
        assert!(error.contains(part), "{name}: {error}");
        assert!(!desk.path().join("p").exists() && !desk.path().join("escaped.yaml").exists(), "{name}");
    }
    // A link in an archive is an empty file, as in Helm: nothing is read or written through it.
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(chart.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "web/Chart.yaml", chart).unwrap();
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    tar.append_link(&mut link, "web/values.yaml", "/etc/passwd").unwrap();
    shelf.put("/link/web-1.0.0.tgz", Reply::of(tar.into_inner().unwrap().finish().unwrap()));
    let desk = Desk::new("");
    desk.done(&["init", "--project", "p", "--helm-chart", &format!("{}/link/web-1.0.0.tgz", shelf.url)]);
    let values = desk.path().join("p/helm-charts/web/values.yaml");
    assert!(fs::symlink_metadata(&values).unwrap().is_file());
    assert_eq!(fs::read_to_string(&values).unwrap(), "");
}

/// As Helm does: some servers say `Content-Encoding: gzip` of each `.tgz`, and a hostile one says it of a
/// bomb.
#[test]
fn answers_are_never_unpacked_on_their_way() {
    let shelf = Shelf::open();
    let url = repository(&shelf, "/charts", &["1.0.0"]);
    let coded = Reply::of(archive("web", "1.0.0")).with("Content-Encoding", "gzip");
    shelf.put("/charts/web-1.0.0.tgz", coded);
    let desk = Desk::new(&on(&url, "1.0.0"));
    desk.done(&["dependency", "update", "app"]);
    assert_eq!(desk.charts(), [("web-1.0.0.tgz".to_owned(), archive("web", "1.0.0"))]);

    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    (0..120).for_each(|_| bomb.write_all(&zeros).unwrap());
    let bomb = Reply::of(bomb.finish().unwrap()).with("Content-Encoding", "gzip");
    shelf.put("/charts/index.yaml", bomb);
    let error = desk.refused(&["dependency", "update", "app"]);
    expect![[r#"
        Getting updates for unmanaged Helm repositories...
        ...Unable to get an update from the "http://127.0.0.1:PORT/charts" chart repository
        error: looks like "http://127.0.0.1:PORT/charts" is not a valid chart repository or cannot be reached: the index is no text: invalid utf-8 sequence of 1 bytes from index 1
    "#]]
    .assert_eq(&masked(&error));
}

const ANN: &str = "Basic YW5uOnNlc2FtZS03Nw==";
const PASSWORD: &str = "sesame-77";

#[test]
fn credentials_go_to_their_server_only_and_are_never_told() {
    let (shelf, other) = (Shelf::open(), Shelf::open());
    let web = archive("web", "1.0.0");
    let elsewhere = format!("{}/web-1.0.0.tgz", other.url);
    let entries = [
        ("web", "1.0.0", "web-1.0.0.tgz", ""),
        ("web", "2.0.0", elsewhere.as_str(), ""),
        ("web", "3.0.0", "moved.tgz", ""),
    ];
    shelf.put("/index.yaml", Reply::of(index(&entries)).behind(ANN, "Basic realm=x"));
    shelf.put("/web-1.0.0.tgz", Reply::of(web.clone()).behind(ANN, "Basic realm=x"));
    shelf.put("/moved.tgz", Reply::to(&elsewhere));
    other.put("/web-1.0.0.tgz", Reply::of(web));
    let desk = Desk::new(&on("@mine", "1.0.0"));
    let known = format!("- {{name: mine, url: {:?}, username: ann, password: {PASSWORD}}}\n", shelf.url);
    desk.repositories(&known);
    desk.done(&["dependency", "update", "app"]);
    assert!(shelf.asked().iter().all(|(_, authorization)| authorization == ANN));
    for version in ["2.0.0", "3.0.0"] {
        desk.write(
            "app/Chart.yaml",
            &format!("apiVersion: v2\nname: app\nversion: 0.1.0\n{}", on("@mine", version)),
        );
        desk.done(&["dependency", "update", "app"]);
        assert_eq!(other.asked(), [("/web-1.0.0.tgz".to_owned(), String::new())], "{version}");
    }
    // With pass_credentials_all the other server gets them, too, as in Helm.
    desk.repositories(&known.replace("}\n", ", pass_credentials_all: true}\n"));
    desk.write(
        "app/Chart.yaml",
        &format!("apiVersion: v2\nname: app\nversion: 0.1.0\n{}", on("@mine", "2.0.0")),
    );
    desk.done(&["dependency", "update", "app"]);
    assert_eq!(other.asked()[0].1, ANN);
    // Neither a wrong password nor one in an address is shown.
    desk.repositories(&format!(
        "- {{name: mine, url: {:?}, username: ann, password: wrong-{PASSWORD}}}\n",
        shelf.url
    ));
    let error = desk.refused(&["dependency", "update", "app"]);
    assert!(error.contains("401") && !error.contains(PASSWORD), "{error}");
    let address = format!("http://ann:wrong-{PASSWORD}@127.0.0.1:{}/?token={PASSWORD}", shelf.port);
    desk.write(
        "app/Chart.yaml",
        &format!("apiVersion: v2\nname: app\nversion: 0.1.0\n{}", on(&address, "1.0.0")),
    );
    let error = desk.refused(&["dependency", "update", "app"]);
    assert!(error.contains("401") && !error.contains(PASSWORD), "{error}");
}

#[test]
fn charts_of_repositories_and_addresses_render_and_begin_projects() {
    let shelf = Shelf::open();
    let url = repository(&shelf, "/charts", &["1.0.0", "1.2.0", "2.0.0-rc.1"]);
    let desk = Desk::new("");
    assert!(desk.done(&["render", "web", "--repo", &url]).contains("of: \"1.2.0\""));
    assert!(desk.done(&["render", "web", "--repo", &url, "--version", "<1.2"]).contains("of: \"1.0.0\""));
    assert!(desk.done(&["render", "r", &format!("{url}/web-2.0.0-rc.1.tgz")]).contains("2.0.0-rc.1"));
    let error = desk.refused(&["render", "web", "--repo", &url, "--version", "9"]);
    assert!(error.contains(&format!("chart \"web\" version \"9\" not found in {url} repository")), "{error}");
    let none = format!("{}/none", shelf.url);
    let error = desk.refused(&["render", "web", "--repo", &none]);
    assert!(error.contains(&format!("looks like \"{none}\" is not a valid chart repository or cannot be reached: failed to fetch {none}/index.yaml : 404")), "{error}");
    let error = desk.refused(&["render", "stable/web"]);
    expect![[r#"
        Error: repo stable not found: stable/web is no path here, and TMP/helm/repositories.yaml names no repository stable; `helm repo add stable URL` writes it down
    "#]]
    .assert_eq(&masked(&error));
    desk.repositories(&format!("- {{name: stable, url: {url:?}}}\n"));
    assert!(desk.done(&["render", "stable/web"]).contains("of: \"1.2.0\""));
    // Entries that are none are told, and the others serve.
    let holes = index(&[("web", "1.0.0", "../charts/web-1.0.0.tgz", "")]) + "  -\n";
    shelf.put("/holes/index.yaml", Reply::of(holes));
    let out = desk.done(&["render", "web", "--repo", &format!("{}/holes", shelf.url)]);
    let warning = "WARNING: skipping an empty entry of chart \"web\" in the index\n";
    assert!(out.contains(warning) && out.contains("of: \"1.0.0\""), "{out}");
    // An index from `helm repo update` counts, as in Helm.
    desk.write("cache/repository/stable-index.yaml", &index(&[("web", "1.0.0", "web-1.0.0.tgz", "")]));
    assert!(desk.done(&["render", "stable/web"]).contains("of: \"1.0.0\""));

    desk.done(&[
        "init",
        "--project",
        "p",
        "--helm-chart",
        "web",
        "--helm-chart-repo",
        &url,
        "--helm-chart-version",
        "~1.0",
    ]);
    let project = desk.path().join("p");
    expect![[r#"
        apiVersion: v2
        name: web
        version: 1.0.0
    "#]]
    .assert_eq(&fs::read_to_string(project.join("helm-charts/web/Chart.yaml")).unwrap());
    expect![[r#"
        # Which chart reconciles which kind. `opdev create api` adds entries.
        - group: charts.my.domain
          version: v1alpha1
          kind: Web
          chart: helm-charts/web
        # +kubebuilder:scaffold:watch
    "#]]
    .assert_eq(&fs::read_to_string(project.join("watches.yaml")).unwrap());
    let output = desk.opdev(&["init", "--project", "q", "--helm-chart-repo", &url]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    expect![[r#"
        error: the following required arguments were not provided:
          --helm-chart <CHART>

        Usage: opdev init --helm-chart <CHART> --project <DIR> --helm-chart-repo <URL>

        For more information, try '--help'.
    "#]]
    .assert_eq(&said(&output));
}

#[test]
fn init_says_once_how_missing_dependencies_are_downloaded() {
    let desk = Desk::new(&on("https://charts.example.com", "1.0.0"));
    let out = desk.done(&["init", "--project", "p", "--helm-chart", "app"]);
    assert_eq!(out.matches("dependency build").count(), 1, "{out}");
    assert!(out.contains("`opdev dependency build helm-charts/app` downloads them"), "{out}");
}

/// A registry of one chart that wants a token.
fn registry(shelf: &Shelf, tags: &str) -> String {
    let content = archive("web", "1.2.0+b.1");
    let manifest = serde_json::json!({
        "schemaVersion": 2,
        "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": format!("sha256:{}", sha256(b"{}")), "size": 2},
        "layers": [{
            "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            "digest": format!("sha256:{}", sha256(&content)), "size": content.len(),
        }],
    })
    .to_string();
    let challenge =
        format!("Bearer realm=\"{}/token\",service=\"reg\",scope=\"repository:charts/web:pull\"", shelf.url);
    let behind = |reply: Reply| reply.behind("Bearer t0k3n-55", &challenge);
    shelf.put("/token", Reply::of("{\"token\": \"t0k3n-55\"}").behind(ANN, "Basic realm=x"));
    shelf.put("/v2/charts/web/tags/list", behind(Reply::of(format!("{{\"tags\": [{tags}]}}"))));
    shelf.put(&format!("/v2/charts/web/blobs/sha256:{}", sha256(&content)), behind(Reply::of(content)));
    let digest = format!("sha256:{}", sha256(manifest.as_bytes()));
    shelf.put("/v2/charts/web/manifests/1.2.0_b.1", behind(Reply::of(manifest.clone())));
    shelf.put(&format!("/v2/charts/web/manifests/{digest}"), behind(Reply::of(manifest)));
    digest
}

#[test]
fn charts_of_registries_come_with_a_login_and_checked_digests() {
    let shelf = Shelf::open();
    let digest = registry(&shelf, "\"1.0.0\", \"1.2.0_b.1\", \"2.0.0-rc.1\", \"latest\", \"v3.0.0\"");
    let desk = Desk::new("");
    let host = format!("127.0.0.1:{}", shelf.port);
    let chart = format!("oci://{host}/charts/web");
    let error = desk.refused(&["render", &chart, "--plain-http"]);
    assert!(error.contains("response status code 401") && error.contains("helm registry login"), "{error}");
    desk.write(
        "helm/registry/config.json",
        &format!("{{\"auths\": {{\"{host}\": {{\"auth\": \"YW5uOnNlc2FtZS03Nw==\"}}}}}}"),
    );
    let out = desk.done(&["render", &chart, "--plain-http"]);
    assert!(out.contains("of: \"1.2.0+b.1\"") && out.contains(&format!("Digest: {digest}")), "{out}");
    for pinned in [format!("{chart}:1.2.0_b.1"), format!("{chart}:1.2.0+b.1"), format!("{chart}@{digest}")] {
        assert!(desk.done(&["render", &pinned, "--plain-http"]).contains("of: \"1.2.0+b.1\""), "{pinned}");
    }
    desk.done(&["init", "--project", "p", "--helm-chart", &chart, "--plain-http"]);
    assert!(desk.path().join("p/helm-charts/web/Chart.yaml").is_file());
    desk.write(
        "app/Chart.yaml",
        &format!(
            "apiVersion: v2\nname: app\nversion: 0.1.0\n{}",
            on(&format!("oci://{host}/charts"), "^1.1.0")
        ),
    );
    desk.done(&["dependency", "update", "app", "--plain-http"]);
    assert_eq!(desk.charts(), [("web-1.2.0+b.1.tgz".to_owned(), archive("web", "1.2.0+b.1"))]);

    let error =
        desk.refused(&["render", &format!("{chart}:1.2.0_b.1"), "--version", "1.0.0", "--plain-http"]);
    expect![[r#"
        Error: chart reference and version mismatch: 1.0.0 is not 1.2.0+b.1
    "#]]
    .assert_eq(&error);
    let error = desk.refused(&["render", &chart, "--version", "^9", "--plain-http"]);
    expect![[r#"
        Error: could not locate a version matching provided version string ^9: oci://127.0.0.1:PORT/charts/web has 2.0.0-rc.1, 1.2.0+b.1, 1.0.0
    "#]]
    .assert_eq(&masked(&error));
    shelf.put(&format!("/v2/charts/web/manifests/{digest}"), Reply::of("{\"changed\": true}"));
    let error = desk.refused(&["render", &format!("{chart}@{digest}"), "--plain-http"]);
    assert!(error.contains("the digest of the manifest is") && error.contains(&digest), "{error}");
    shelf.put(
        &format!("/v2/charts/web/blobs/sha256:{}", sha256(&archive("web", "1.2.0+b.1"))),
        Reply::of(archive("web", "6.6.6")),
    );
    let error = desk.refused(&["render", &format!("{chart}:1.2.0+b.1"), "--plain-http"]);
    assert!(error.contains("the digest of the chart is"), "{error}");
    // The password went to the registry's server for tokens and nowhere else; the token is told nowhere.
    for (path, authorization) in shelf.asked() {
        assert!(authorization != ANN || path.starts_with("/token?"), "{path}");
    }
    assert!(!error.contains(PASSWORD) && !error.contains("t0k3n-55"), "{error}");
}

#[test]
fn a_list_of_tags_without_an_end_is_refused() {
    let shelf = Shelf::open();
    let page = format!("{{\"tags\": [{:?}]}}", "x".repeat(1 << 20));
    let next = "</v2/charts/web/tags/list?last=x>; rel=\"next\"";
    shelf.put("/v2/charts/web/tags/list", Reply::of(page).with("Link", next));
    let chart = format!("oci://127.0.0.1:{}/charts/web", shelf.port);
    let error = Desk::new("").refused(&["render", &chart, "--plain-http"]);
    expect![[r#"
        Error: http://127.0.0.1:PORT/v2/charts/web/tags/list: the list of tags leads in a circle
    "#]]
    .assert_eq(&masked(&error));
    assert!(shelf.asked().len() < 10);
}

#[test]
fn a_login_of_the_command_line_goes_to_one_registry() {
    let (shelf, other) = (Shelf::open(), Shelf::open());
    let [mine, theirs] = [&shelf, &other].map(|one| format!("oci://127.0.0.1:{}/charts", one.port));
    let second = format!("- {{name: db, version: 1.0.0, repository: {theirs:?}}}\n");
    let desk = Desk::new(&(on(&mine, "1.0.0") + &second));
    desk.write("password", PASSWORD);
    let update = |more: &[&str]| {
        let mut command = desk.command(Path::new(env!("CARGO_BIN_EXE_opdev")));
        command.args([
            "dependency",
            "update",
            "app",
            "--plain-http",
            "--username",
            "ann",
            "--password-stdin",
        ]);
        command.args(more).stdin(fs::File::open(desk.path().join("password")).unwrap());
        said(&command.output().unwrap())
    };
    let error = update(&[]);
    expect![[r#"
        error: --username is the login of one registry, and the chart takes dependencies from 127.0.0.1:PORT, 127.0.0.1:PORT. `helm registry login` writes down a login for each; --pass-credentials sends this one to all of them
    "#]]
    .assert_eq(&masked(&error));
    assert!(shelf.asked().is_empty() && other.asked().is_empty());
    let error = update(&["--pass-credentials"]);
    expect![[r#"
        Saving 2 charts
        Downloading web from repo oci://127.0.0.1:PORT/charts
        error: could not download web from oci://127.0.0.1:PORT/charts: GET "http://127.0.0.1:PORT/v2/charts/web/manifests/1.0.0": response status code 404
    "#]]
    .assert_eq(&masked(&error));
    assert!(!shelf.asked().is_empty());
}

#[test]
fn a_server_that_a_registry_redirects_to_gets_no_login() {
    let (shelf, other) = (Shelf::open(), Shelf::open());
    registry(&shelf, "\"1.2.0_b.1\"");
    let digest = sha256(&archive("web", "1.2.0+b.1"));
    shelf.put(&format!("/v2/charts/web/blobs/sha256:{digest}"), Reply::to(&format!("{}/blob", other.url)));
    let challenge = format!("Bearer realm=\"{}/token\",service=\"reg\"", other.url);
    other.put("/token", Reply::of("{\"token\": \"t0k3n-55\"}"));
    other.put("/blob", Reply::of("").behind("Bearer t0k3n-55", &challenge));
    let desk = Desk::new("");
    let host = format!("127.0.0.1:{}", shelf.port);
    desk.write(
        "helm/registry/config.json",
        &format!("{{\"auths\": {{\"{host}\": {{\"auth\": \"YW5uOnNlc2FtZS03Nw==\"}}}}}}"),
    );
    let error = desk.refused(&["render", &format!("oci://{host}/charts/web:1.2.0_b.1"), "--plain-http"]);
    assert!(error.contains("response status code 401"), "{error}");
    assert_eq!(other.asked(), [("/blob".to_owned(), String::new())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_without_its_dependencies_does_not_run_until_they_are_asked_for() {
    use crate::inner_loop::Opdev;
    use opdev_event::{Event, KindHealth, KindStatus, ProjectTask, RequestOutcome};
    let shelf = Shelf::open();
    let url = repository(&shelf, "/charts", &["1.0.0"]);
    let mut opdev = Opdev::start().await;
    let mark = opdev.mark();
    opdev.edit("charts/memcached/Chart.yaml", |text| text + &on(&url, "1.0.0"));
    let failed = opdev.reload_failure("the chart is broken", mark).await;
    let told =
        failed.diagnostics.iter().find(|one| one.message.contains("missing in charts/ directory: web"));
    let told = told.unwrap_or_else(|| panic!("{failed:?}"));
    assert_eq!(
        told.hint.as_deref(),
        Some("`opdev dependency build charts/memcached` downloads them, and so does g u on the screen")
    );
    assert_eq!(told.place.as_ref().unwrap().file, "charts/memcached/Chart.yaml");
    assert!(shelf.asked().is_empty(), "nothing is downloaded unasked");
    let mark = opdev.mark();
    let outcome = opdev.ask(ProjectTask::FetchDependencies).await;
    let RequestOutcome::Done { summary, .. } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(summary, "the dependencies of charts/memcached are there");
    assert!(opdev.root.join("charts/memcached/charts/web-1.0.0.tgz").is_file());
    let serves = |kind: &KindStatus| kind.gvk.kind == "Memcached" && kind.health == KindHealth::Serving;
    opdev
        .wait("the chart is whole", mark, |event| match event {
            Event::SourcesChanged(changed) => changed.kinds.iter().any(serves).then_some(()),
            _ => None,
        })
        .await;
    opdev.stop().await;
}

#[tokio::test]
async fn a_saved_file_of_a_dependency_in_the_project_is_told_until_it_is_packed_again() {
    use crate::inner_loop::Opdev;
    use opdev_event::{Event, ProjectTask, RequestOutcome};
    let list = "dependencies:\n- {name: near, version: 0.1.0, repository: \"file://../near\"}\n";
    let mut opdev = Opdev::start_after(|root| {
        fs::create_dir_all(root.join("charts/near")).unwrap();
        fs::write(root.join("charts/near/Chart.yaml"), "apiVersion: v2\nname: near\nversion: 0.1.0\n")
            .unwrap();
        fs::write(root.join("charts/near/values.yaml"), "size: 1\n").unwrap();
        let chart = root.join("charts/memcached/Chart.yaml");
        let text = fs::read_to_string(&chart).unwrap();
        fs::write(chart, text + list).unwrap();
    })
    .await;
    let packs = async |opdev: &mut Opdev| {
        let mark = opdev.mark();
        let outcome = opdev.ask(ProjectTask::FetchDependencies).await;
        assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
        let is_whole = |event: &Event| match event {
            Event::SourcesChanged(changed) => changed.diagnostics.is_empty().then_some(()),
            _ => None,
        };
        opdev.wait("nothing is wrong", mark, is_whole).await;
    };
    packs(&mut opdev).await;
    let mark = opdev.mark();
    opdev.edit("charts/near/values.yaml", |_| "size: 2\n".to_owned());
    let told = |event: &Event| match event {
        Event::SourcesChanged(changed) => changed.diagnostics.first().cloned(),
        _ => None,
    };
    let told = opdev.wait("the older archive is told", mark, told).await;
    assert_eq!(
        told.message,
        "charts/memcached/charts/near-0.1.0.tgz is not what charts/near is now: values.yaml differs, and the chart uses \
         the packed one"
    );
    assert_eq!(told.place.unwrap().file, "charts/memcached/Chart.yaml");
    packs(&mut opdev).await;
    opdev.stop().await;
}

#[test]
fn a_schema_at_an_address_is_fetched_only_where_the_user_says_so() {
    let shelf = Shelf::open();
    let url = format!("{}/size.json", shelf.url);
    shelf.put("/size.json", Reply::of(r#"{"type": "integer"}"#));
    let desk = Desk::new("");
    let schema = format!(r#"{{"properties": {{"size": {{"$ref": "{url}"}}}}}}"#);
    desk.write("app/values.schema.json", &schema);
    let refused = desk.refused(&["render", "app"]);
    assert!(
        refused.contains(&format!("{url} is not fetched")) && refused.contains("--fetch-schemas"),
        "{refused}"
    );
    assert!(shelf.asked().is_empty(), "{:?}", shelf.asked());
    desk.done(&["render", "app", "--fetch-schemas", "--set", "size=1"]);
    let wrong = desk.refused(&["render", "app", "--fetch-schemas", "--set", "size=x"]);
    expect![[r#"
        Error: values don't meet the specifications of the schema(s) in the following chart(s):
        app:
        - at '/size': got string, want integer

    "#]]
    .assert_eq(&wrong);
    desk.done(&["render", "app", "--skip-schema-validation", "--set", "size=x"]);
}
