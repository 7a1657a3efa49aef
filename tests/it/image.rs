//! `opdev image` as its users meet it: what is in the image, that its digest depends on nothing else, what is
//! refused, and that container tools take it. The program in it is a tiny one that ends with exit code 42.

use crate::controlplane::webhook_server::Webhook;
use crate::masked::masked;
use crate::pull::{RealRegistry, Reply, Shelf, archive, packed, sha256};
use expect_test::expect;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A static program for Linux: `exit(42)`.
fn tiny(machine: u16) -> Vec<u8> {
    let code: &[u8] = b"\xbf\x2a\x00\x00\x00\xb8\x3c\x00\x00\x00\x0f\x05";
    let (base, head) = (0x40_0000_u64, 64 + 56_u64);
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    elf.extend(2_u16.to_le_bytes());
    elf.extend(machine.to_le_bytes());
    elf.extend(1_u32.to_le_bytes());
    for number in [base + head, 64, 0] {
        elf.extend(number.to_le_bytes());
    }
    elf.extend(0_u32.to_le_bytes());
    for number in [64_u16, 56, 1, 0, 0, 0] {
        elf.extend(number.to_le_bytes());
    }
    elf.extend(1_u32.to_le_bytes());
    elf.extend(5_u32.to_le_bytes());
    for number in [0, base, base, head + code.len() as u64, head + code.len() as u64, 0x1000] {
        elf.extend(number.to_le_bytes());
    }
    elf.extend(code);
    elf
}

const X86: u16 = 62;
const ARM: u16 = 183;

/// A project that `opdev init` has made, beside a program to pack.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(bench.at("cache-operator")).unwrap();
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/hello");
        let made = bench.opdev(&["init", "--helm-chart", chart, "--domain", "example.com"]);
        assert!(made.status.success(), "{}", said(&made));
        fs::write(bench.at("opdev-amd64"), tiny(X86)).unwrap();
        fs::write(bench.at("opdev-arm64"), tiny(ARM)).unwrap();
        bench
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn command(&self) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_opdev"))
    }

    fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.at("cache-operator")).env("HOME", self.folder.path()).env("NO_PROXY", "*");
        for name in ["SOURCE_DATE_EPOCH", "DOCKER_CONFIG", "XDG_CONFIG_HOME", "HELM_CONFIG_HOME"] {
            command.env_remove(name);
        }
        command
    }

    fn opdev(&self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }

    /// The digests of an image that is made.
    fn image(&self, args: &[&str]) -> Value {
        let mut all = vec!["image", "--json", "--binary", "../opdev-amd64"];
        all.extend(args);
        let made = self.opdev(&all);
        assert!(made.status.success(), "{}", said(&made));
        serde_json::from_slice(&made.stdout).unwrap()
    }

    fn refused(&self, args: &[&str]) -> String {
        let made = self.opdev(args);
        assert_eq!(made.status.code(), Some(1), "{}", said(&made));
        said(&made)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Every blob of a layout has the digest that it is named after, and the index names what is there.
fn manifest(layout: &Path) -> Value {
    for blob in fs::read_dir(layout.join("blobs/sha256")).unwrap() {
        let path = blob.unwrap().path();
        assert_eq!(sha256(&fs::read(&path).unwrap()), path.file_name().unwrap().to_str().unwrap());
    }
    let read = |path: PathBuf| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    let index = read(layout.join("index.json"));
    let digest = index["manifests"][0]["digest"].as_str().unwrap();
    read(layout.join("blobs").join(digest.replace(':', "/")))
}

#[test]
fn what_the_operator_reads_is_in_the_image_and_nothing_else() {
    let bench = Bench::new();
    for (path, text) in [
        (".opdev/kubeconfig", "secret"),
        (".git/config", "secret"),
        ("notes.txt", "mine"),
        ("helm-charts/hello/draft.md", "mine"),
        ("helm-charts/hello/.helmignore", "*.md\n"),
    ] {
        let path = bench.at("cache-operator").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let listed = bench.opdev(&["image", "--dry-run"]);
    assert!(listed.status.success(), "{}", said(&listed));
    let text = String::from_utf8(listed.stdout).unwrap();
    let paths: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next_back()).collect();
    assert_eq!(
        paths,
        [
            "/etc/group",
            "/etc/passwd",
            "/usr/local/bin/opdev",
            "/opt/helm/PROJECT",
            "/opt/helm/config/crd/bases/charts.example.com_hellos.yaml",
            "/opt/helm/helm-charts/hello/.helmignore",
            "/opt/helm/helm-charts/hello/Chart.yaml",
            "/opt/helm/helm-charts/hello/templates/NOTES.txt",
            "/opt/helm/helm-charts/hello/templates/_helpers.tpl",
            "/opt/helm/helm-charts/hello/templates/greeter.yaml",
            "/opt/helm/helm-charts/hello/templates/hello.yaml",
            "/opt/helm/helm-charts/hello/templates/ingress.yaml",
            "/opt/helm/helm-charts/hello/values.yaml",
            "/opt/helm/watches.yaml",
        ]
    );
}

/// A file that is left out would be seen: the image is a project with the same types as the one that it was
/// made of.
#[test]
fn what_is_in_the_image_is_the_whole_project() {
    let bench = Bench::new();
    let (_folder, root) = crate::inner_loop::demo_project();
    bench.image(&["-o", "../layout", "--project", root.to_str().unwrap()]);
    let layer = manifest(&bench.at("layout"))["layers"][1]["digest"].as_str().unwrap().replace(':', "/");
    let bytes = fs::read(bench.at("layout/blobs").join(layer)).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice())).unpack(bench.at("unpacked")).unwrap();
    let again = bench.at("unpacked/opt/helm");
    let told = |folder: &Path, words: &[&str]| {
        let output = bench.command().current_dir(folder).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let crds = told(&root, &["crd", "-o", "-"]);
    assert!(crds.contains("group: app.example.com"), "{crds}");
    assert_eq!(told(&again, &["crd", "-o", "-"]), crds);
    let list = ["image", "--dry-run", "--json"];
    assert_eq!(told(&again, &list), told(&root, &list));
}

#[test]
fn the_same_files_are_the_same_digest_wherever_and_whenever() {
    let (one, other) = (Bench::new(), Bench::new());
    // Later, in another order, by another name of the folder.
    let old = fs::read(other.at("cache-operator/watches.yaml")).unwrap();
    fs::remove_file(other.at("cache-operator/watches.yaml")).unwrap();
    fs::write(other.at("cache-operator/watches.yaml"), old).unwrap();
    let first = one.image(&["-o", "../layout", "--tag", "r.example/cache:v1"]);
    let second = other.image(&["-o", "../image.tar"]);
    assert_eq!(first["images"], second["images"]);
    assert_eq!(first["digest"], one.image(&["-o", "../layout", "--tag", "r.example/cache:v1"])["digest"]);
    let manifest = manifest(&one.at("layout"));
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 2);
    let dated = one
        .command()
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .args(["image", "--json", "-o", "../dated.tar"])
        .args(["--binary", "../opdev-amd64"])
        .output()
        .unwrap();
    let dated: Value = serde_json::from_slice(&dated.stdout).unwrap();
    assert_ne!(dated["digest"], first["digest"]);
    fs::write(one.at("cache-operator/helm-charts/hello/values.yaml"), "a: 1\n").unwrap();
    assert_ne!(one.image(&["-o", "../changed.tar"])["digest"], first["digest"]);
    // Another name is added to the layout, the same one replaced.
    one.image(&["-o", "../layout", "--tag", "r.example/cache:v2"]);
    let index: Value = serde_json::from_slice(&fs::read(one.at("layout/index.json")).unwrap()).unwrap();
    assert_eq!(index["manifests"].as_array().unwrap().len(), 2);
}

#[test]
fn a_program_that_would_not_run_is_refused_with_what_to_do() {
    let bench = Bench::new();
    fs::copy("/bin/sh", bench.at("sh")).unwrap();
    let said = bench.refused(&["image", "-o", "../layout", "--binary", "../sh"]);
    assert!(said.contains("libc") && said.contains("--binary PATH") && said.contains("--base REF"), "{said}");
    let said = bench.refused(&["image", "-o", "../layout", "--binary", "watches.yaml"]);
    expect![[r#"
        error: watches.yaml does not run in an image for Linux: it is no program
          to do: name an opdev for Linux with --binary PATH; each release has one that needs no libraries
    "#]]
    .assert_eq(&said);
    let two = ["--binary", "../opdev-amd64", "--platform", "linux/amd64,linux/arm64"];
    let said = bench.refused(&[&["image", "-o", "../layout"], two.as_slice()].concat());
    expect![[r#"
        error: there is no program for linux/arm64, only for linux/amd64
          to do: name an opdev for it with --binary PATH, which may be repeated; each release has one for linux/amd64 and linux/arm64
    "#]]
    .assert_eq(&said);
    assert!(!bench.at("layout").exists());
    let made = bench.image(&["-o", "../layout", "--binary", "../opdev-arm64"]);
    let platforms: Vec<_> =
        made["images"].as_array().unwrap().iter().map(|one| one["platform"].clone()).collect();
    assert_eq!(platforms, ["linux/amd64", "linux/arm64"]);
    assert_eq!(manifest(&bench.at("layout"))["manifests"].as_array().unwrap().len(), 2);
    // A folder of the user's is not written into.
    let said = bench.refused(&["image", "-o", "helm-charts", "--binary", "../opdev-amd64"]);
    expect![[r#"
        error: helm-charts is a folder with other files in it; --output takes a new folder, one with an OCI layout, or a file that ends in .tar
    "#]]
    .assert_eq(&said);
    assert!(!bench.at("cache-operator/helm-charts/oci-layout").exists());
}

#[test]
fn keys_links_and_files_that_are_missed_are_refused() {
    let bench = Bench::new();
    let root = bench.at("cache-operator");
    let image =
        |more: &[&'static str]| [&["image", "-o", "../i.tar", "--binary", "../opdev-amd64"], more].concat();
    let key = root.join("helm-charts/hello/tls.key");
    fs::write(&key, "-----BEGIN PRIVATE KEY-----\nMC4\n-----END PRIVATE KEY-----\n").unwrap();
    let said = bench.refused(&image(&[]));
    expect![[r#"
        error: whoever pulls the image could read what should stay here:
          helm-charts/hello/tls.key looks like a private key
          to do: name such a file in .dockerignore or in the chart's .helmignore; if it may be read by anybody, say --allow-file PATH
    "#]]
    .assert_eq(&said);
    assert!(!bench.at("i.tar").exists());
    assert!(bench.opdev(&image(&["--allow-file", "helm-charts/hello/tls.key"])).status.success());
    fs::write(root.join(".dockerignore"), "**/*.key\n").unwrap();
    assert!(bench.opdev(&image(&[])).status.success());
    fs::write(root.join(".dockerignore"), "**/*.key\nhelm-charts\n").unwrap();
    let said = bench.refused(&image(&[]));
    assert!(
        said.contains(".dockerignore leaves out what the operator needs") && said.contains("Chart.yaml"),
        "{said}"
    );
    // A file that a template may read is needed, one for people is not.
    fs::write(root.join("helm-charts/hello/data.txt"), "a").unwrap();
    fs::write(root.join("helm-charts/hello/README.md"), "a").unwrap();
    fs::write(root.join(".dockerignore"), "**/*.key\n**/*.md\n").unwrap();
    assert!(bench.opdev(&image(&[])).status.success());
    fs::write(root.join(".dockerignore"), "**/*.key\n**/*.txt\n").unwrap();
    let said = bench.refused(&image(&[]));
    expect![[r#"
        error: .dockerignore leaves out what the operator needs: helm-charts/hello/data.txt, helm-charts/hello/templates/NOTES.txt
          to do: take them back there, with lines such as !helm-charts/hello/data.txt
    "#]]
    .assert_eq(&said);
    fs::remove_file(root.join(".dockerignore")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", root.join(".dockerignore")).unwrap();
    let said = bench.refused(&image(&[]));
    expect![[r#"
        error: .dockerignore cannot be read: it is missing, forbidden, larger than 8 MiB, no plain file, or no UTF-8
    "#]]
    .assert_eq(&said);
    fs::remove_file(root.join(".dockerignore")).unwrap();
    fs::remove_file(&key).unwrap();
    // A chart that is packed in this one has files of its own.
    let files = root.join("helm-charts/hello/files");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("plain.tgz"), archive("plain", "1.0.0")).unwrap();
    assert!(bench.opdev(&image(&[])).status.success());
    let text = "-----BEGIN PRIVATE KEY-----\nMC4\n-----END PRIVATE KEY-----\n";
    fs::write(files.join("inner.tgz"), packed(&[("inner/tls.key", text.as_bytes())])).unwrap();
    let inner = fs::read(files.join("inner.tgz")).unwrap();
    fs::write(files.join("outer.tgz"), packed(&[("outer/charts/inner.tgz", &inner)])).unwrap();
    fs::remove_file(files.join("inner.tgz")).unwrap();
    fs::write(files.join("none.tgz"), "no archive").unwrap();
    let said = bench.refused(&image(&[]));
    let key_of = "files/outer.tgz/charts/inner.tgz/tls.key looks like a private key";
    assert!(said.contains(key_of) && said.contains("files/none.tgz cannot be searched"), "{said}");
    let (outer, none) = ("helm-charts/hello/files/outer.tgz", "helm-charts/hello/files/none.tgz");
    let both = ["--allow-file", outer, "--allow-file", none];
    assert!(bench.opdev(&image(&both)).status.success());
    fs::remove_dir_all(&files).unwrap();
    fs::write(bench.at("outside.yaml"), "a: 1\n").unwrap();
    std::os::unix::fs::symlink(bench.at("outside.yaml"), root.join("helm-charts/hello/more.yaml")).unwrap();
    let said = bench.refused(&image(&[]));
    expect![[r#"
        error: helm-charts/hello/more.yaml leads out of the project, to TMP/outside.yaml; put the file itself into the chart
    "#]]
    .assert_eq(&masked(&said));
    fs::remove_file(root.join("helm-charts/hello/more.yaml")).unwrap();
    // Behind a link that stays in the project lies one that leaves it.
    fs::create_dir(root.join("shared")).unwrap();
    std::os::unix::fs::symlink(bench.at("outside.yaml"), root.join("shared/far.yaml")).unwrap();
    std::os::unix::fs::symlink("../../shared", root.join("helm-charts/hello/more")).unwrap();
    let said = bench.refused(&image(&[]));
    expect![[r#"
        error: helm-charts/hello/more/far.yaml leads out of the project, to TMP/outside.yaml; put the file itself into the chart
    "#]]
    .assert_eq(&masked(&said));
    fs::remove_file(root.join("helm-charts/hello/more")).unwrap();
    // The folder above the chart is one.
    fs::rename(root.join("helm-charts"), bench.at("elsewhere")).unwrap();
    std::os::unix::fs::symlink(bench.at("elsewhere"), root.join("helm-charts")).unwrap();
    let said = bench.refused(&image(&[]));
    expect![[r#"
        error: helm-charts/hello leads out of the project, to TMP/elsewhere/hello; put the file itself into the chart
    "#]]
    .assert_eq(&masked(&said));
    fs::remove_file(root.join("helm-charts")).unwrap();
    fs::rename(bench.at("elsewhere"), root.join("helm-charts")).unwrap();
    fs::write(root.join("helm-charts/hello/templates/hello.yaml"), "{{ if }}").unwrap();
    let said = bench.refused(&image(&[]));
    expect![[r#"
        error: the operator would not be ready with these files:
          helm-charts/hello/templates/hello.yaml:1:7: parse error at (hello/templates/hello.yaml:1): missing value for if
    "#]]
    .assert_eq(&said);
}

/// Registries keep blobs elsewhere, and give tokens for what they were asked for.
#[test]
fn what_a_registry_has_elsewhere_is_not_sent_again_and_its_token_is_good_for_the_push() {
    let bench = Bench::new();
    let made = bench.image(&["-o", "../layout", "--tag", "r.example/team/cache:v1"]);
    let (shelf, storage) = (Shelf::open(), Shelf::open());
    let manifest = manifest(&bench.at("layout"));
    let layers = manifest["layers"].as_array().unwrap().iter().chain([&manifest["config"]]);
    let digests: Vec<&str> = layers.map(|blob| blob["digest"].as_str().unwrap()).collect();
    let challenge =
        format!("Bearer realm=\"{}/token\",service=\"reg\",scope=\"repository:team/cache:pull\"", shelf.url);
    let put = |path: &str, reply: Reply| shelf.put(path, reply.behind("Bearer t0k3n", &challenge));
    shelf.put("/token", Reply::of("{\"token\": \"t0k3n\"}"));
    // The storage has all but one, which has to be sent.
    for digest in &digests {
        put(&format!("/v2/team/cache/blobs/{digest}"), Reply::to(&format!("{}/{digest}", storage.url)));
    }
    digests[1..].iter().for_each(|digest| storage.put(&format!("/{digest}"), Reply::of("")));
    put("/v2/team/cache/blobs/uploads/", Reply::status(202).with("Location", "/upload"));
    put("/upload", Reply::status(201));
    let digest = made["digest"].as_str().unwrap();
    put("/v2/team/cache/manifests/v1", Reply::status(201).with("Docker-Content-Digest", digest));
    let name = format!("127.0.0.1:{}/team/cache:v1", shelf.port);
    let pushed = said(&bench.opdev(&["image", "--binary", "../opdev-amd64", "--push", &name]));
    assert!(pushed.contains("1 blob"), "{pushed}");
    let asked = shelf.asked();
    let tokens: Vec<&String> =
        asked.iter().map(|(path, _)| path).filter(|path| path.starts_with("/token")).collect();
    assert_eq!(tokens.len(), 1, "{tokens:?}");
    expect!["/token?service=reg&scope=repository%3Ateam%2Fcache%3Apull%2Cpush"].assert_eq(tokens[0]);
    let uploads: Vec<&String> =
        asked.iter().map(|(path, _)| path).filter(|path| path.starts_with("/upload")).collect();
    assert_eq!(uploads.len(), 1, "{uploads:?}");
    // The storage is a server of others.
    let elsewhere = storage.asked();
    assert!(elsewhere.len() == 3 && elsewhere.iter().all(|(_, login)| login.is_empty()), "{elsewhere:?}");
}

/// On this machine a registry mostly has no TLS; one that has it is never asked without, whatever its
/// certificate.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_trusts_is_no_reason_to_do_without_tls() {
    let bench = Bench::new();
    let registry = Webhook::start().await;
    let name = format!("127.0.0.1:{}/team/cache:v1", registry.port);
    let push = ["image", "--binary", "../opdev-amd64", "--push", &name];
    let refused = bench.refused(&push);
    assert!(refused.contains("https://127.0.0.1") && refused.contains("certificate"), "{refused}");
    assert!(refused.contains("--ca-file") && !refused.contains("--plain-http"), "{refused}");
    assert!(registry.paths().is_empty());
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs skopeo, umoci and docker-registry")]
fn container_tools_and_a_registry_take_it_and_its_program_runs() {
    let bench = Bench::new();
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).current_dir(bench.folder.path()).output();
        let output =
            output.unwrap_or_else(|error| panic!("{program} is missing: apt-get install {program}: {error}"));
        assert!(output.status.success(), "{program} {args:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let made = bench.image(&["-o", "../layout", "--tag", "r.example/cache:v1"]);
    bench.image(&["-o", "../image.tar", "--tag", "r.example/cache:v1"]);
    for place in ["oci:layout:v1", "oci-archive:image.tar"] {
        let seen: Value = serde_json::from_str(&run("skopeo", &["inspect", place])).unwrap();
        assert_eq!((&seen["Digest"], &seen["Architecture"]), (&made["digest"], &"amd64".into()), "{place}");
    }
    let layers = made["images"][0]["layers"].as_array().unwrap().len();
    let seen: Value = serde_json::from_str(&run("skopeo", &["inspect", "docker-archive:image.tar"])).unwrap();
    assert_eq!(seen["Layers"].as_array().unwrap().len(), layers);
    run("umoci", &["unpack", "--rootless", "--image", "layout:v1", "bundle"]);
    let watches = fs::read_to_string(bench.at("bundle/rootfs/opt/helm/watches.yaml")).unwrap();
    assert_eq!(watches, fs::read_to_string(bench.at("cache-operator/watches.yaml")).unwrap());
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        // Whoever is not root becomes it in a namespace.
        let is_root = run("id", &["-u"]).trim() == "0";
        let words: &[&str] = if is_root { &["chroot"] } else { &["unshare", "--map-root-user", "chroot"] };
        let ended = Command::new(words[0])
            .args(&words[1..])
            .args(["bundle/rootfs", "/usr/local/bin/opdev"])
            .current_dir(bench.folder.path())
            .status()
            .unwrap();
        assert_eq!(ended.code(), Some(42));
    }

    let registry = RealRegistry::start();
    let name = format!("{}/team/cache:v1", registry.host);
    let push = ["image", "--binary", "../opdev-amd64", "--push", &name];
    let refused = bench.refused(&push);
    assert!(refused.contains("401") && refused.contains("docker login"), "{refused}");
    fs::create_dir_all(bench.at(".docker")).unwrap();
    let login = format!("{{\"auths\": {{\"{}\": {{\"auth\": \"YW5uOnNlc2FtZS03Nw==\"}}}}}}", registry.host);
    fs::write(bench.at(".docker/config.json"), login).unwrap();
    let first = said(&bench.opdev(&push));
    assert!(first.contains("3 blobs were new") && first.contains("opdev deploy --image"), "{first}");
    assert!(said(&bench.opdev(&push)).contains("0 blobs were new"));
    let place = format!("docker://{name}");
    let credentials = ["--creds", "ann:sesame-77", "--tls-verify=false"];
    let seen: Value =
        serde_json::from_str(&run("skopeo", &[&["inspect"], &credentials[..], &[&place]].concat())).unwrap();
    assert_eq!(seen["Digest"], made["digest"]);

    // Upon that image, one of a program that needs libraries.
    fs::copy("/bin/sh", bench.at("sh")).unwrap();
    let upon = ["image", "--json", "-o", "../upon", "--binary", "../sh", "--base", &name];
    let upon: Value = serde_json::from_slice(&bench.opdev(&upon).stdout).unwrap();
    assert_eq!(upon["images"][0]["layers"].as_array().unwrap().len(), layers + 2);
    let both = format!("{}/team/cache:both", registry.host);
    let made = bench.image(&["--binary", "../opdev-arm64", "--push", &both]);
    let place = format!("docker://{both}");
    let raw = run("skopeo", &[&["inspect", "--raw"], &credentials[..], &[&place]].concat());
    assert_eq!(format!("sha256:{}", sha256(raw.as_bytes())), made["digest"].as_str().unwrap());
}

/// buildah as `CONTAINER_TOOL`, where it is installed and may change owners: a script that keeps its images
/// in the bench's folder.
fn buildah(bench: &Bench) -> Option<PathBuf> {
    Command::new("buildah").arg("--version").output().ok().filter(|output| output.status.success())?;
    let user = Command::new("id").arg("-u").output().unwrap().stdout;
    if user.trim_ascii() != b"0" {
        return None;
    }
    let at = bench.folder.path().display();
    fs::write(bench.at("policy.json"), r#"{"default": [{"type": "insecureAcceptAnything"}]}"#).unwrap();
    let script = format!(
        "#!/bin/sh\ncommand=$1\nshift\nexport BUILDAH_ISOLATION=chroot\nexec buildah --storage-driver vfs --root {at}/store \
         --runroot {at}/run \"$command\" --signature-policy {at}/policy.json --tls-verify=false --authfile \
         {at}/.docker/config.json \"$@\"\n"
    );
    let path = bench.at("container-tool");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Some(path)
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs buildah, skopeo, umoci and docker-registry")]
fn the_dockerfile_of_a_project_builds_upon_opdev_with_a_container_tool() {
    let bench = Bench::new();
    let Some(tool) = buildah(&bench) else {
        println!("left out: buildah is not installed, or this is not root");
        return;
    };
    let registry = RealRegistry::start();
    fs::create_dir_all(bench.at(".docker")).unwrap();
    let login = format!("{{\"auths\": {{\"{}\": {{\"auth\": \"YW5uOnNlc2FtZS03Nw==\"}}}}}}", registry.host);
    fs::write(bench.at(".docker/config.json"), login).unwrap();
    let (base, image) = (format!("{}/opdev:0.1.0", registry.host), format!("{}/cache:v1", registry.host));
    bench.image(&["--without-project", "--push", &base]);
    let types = [
        "init",
        "--types",
        "--project",
        "../typed",
        "--domain",
        "example.com",
        "--group",
        "g",
        "--version",
        "v1",
    ];
    fs::create_dir(bench.at("typed")).unwrap();
    let made = bench.opdev(&[&types[..], &["--kind", "Thing", "--project-name", "typed"]].concat());
    assert!(made.status.success(), "{}", said(&made));
    let run = |program: &str, folder: &str, args: &[&str]| {
        let output = bench.command_of(program).current_dir(bench.at(folder)).args(args).output().unwrap();
        assert!(output.status.success(), "{program} {args:?}: {}", said(&output));
    };
    for (project, has) in
        [("cache-operator", "helm-charts/hello/Chart.yaml"), ("typed", "config/reconcilers")]
    {
        let variables = [
            format!("CONTAINER_TOOL={}", tool.display()),
            format!("IMG={image}-{project}"),
            format!("BASE_IMG={base}"),
        ];
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        run("make", project, &[&["docker-build"], &variables[..]].concat());
        run("make", project, &[&["docker-push"], &variables[..]].concat());
        let (from, to) = (format!("docker://{image}-{project}"), format!("oci:built:{project}"));
        let bundle = format!("bundle-of-{project}");
        run(
            "skopeo",
            ".",
            &[
                "--insecure-policy",
                "copy",
                "--src-creds",
                "ann:sesame-77",
                "--src-tls-verify=false",
                &from,
                &to,
            ],
        );
        run("umoci", ".", &["unpack", "--rootless", "--image", &format!("built:{project}"), &bundle]);
        let rootfs = bench.at(&bundle).join("rootfs");
        assert!(rootfs.join("opt/helm").join(has).exists(), "{project}");
        let config = fs::read_to_string(bench.at(&bundle).join("config.json")).unwrap();
        let process = serde_json::from_str::<Value>(&config).unwrap()["process"].take();
        assert_eq!(
            (&process["cwd"], &process["args"][1]),
            (&"/opt/helm".into(), &"operate".into()),
            "{process}"
        );
        if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            let program = fs::read(rootfs.join("usr/local/bin/opdev")).unwrap();
            assert_eq!(program, tiny(X86), "{project}");
        }
    }
}
