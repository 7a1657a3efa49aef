//! The numbers of types: from Go text to CRDs, cold and after one edit, and scripts, loaded and called.
//! `cargo bench --bench types` makes up an API of about 6,000 lines; `OPDEV_BENCH_TYPES=DIR` reads a project
//! instead, and `OPDEV_CONTROLLER_GEN=PATH` runs that controller-gen beside it. Medians; the ratios are what
//! can be compared between machines.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use opdev_project::go::files;
use opdev_project::go::files::{Disk, Wanted};

use opdev_object::meta::Gvk;
use opdev_scaffold::write::OnDisk;
use opdev_scaffold::{ApiOptions, CrdSchema, Draft, InitOptions, Layout, Reconciler};
use opdev_script::contract::{
    Exec, Executed, Fetch, Fetched, Host, HostError, HostErrorKind, Limits, Observed, Read,
};
use opdev_script::program;
use opdev_types::go::{Files, Generator, Options, Profile};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const RUNS: usize = 20;

/// A project with one file that is edited in memory only.
struct Edited<'a> {
    disk: &'a Disk,
    texts: RefCell<BTreeMap<String, Arc<str>>>,
}

impl Files for Edited<'_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.texts.borrow().get(path).cloned().or_else(|| self.disk.read(path))
    }

    fn list(&self, dir: &str) -> Vec<String> {
        self.disk.list(dir)
    }

    fn module_cache(&self) -> Option<String> {
        self.disk.module_cache()
    }
}

fn main() {
    let made_up = made_up();
    let root = std::env::var_os("OPDEV_BENCH_TYPES").map_or_else(|| made_up.path().to_owned(), PathBuf::from);
    let root = root.canonicalize().unwrap();
    let settings = files::settings(&root, "2026");
    let profile = settings.version.as_ref().map_or_else(Profile::default, |pin| Profile::parse(&pin.text));
    let options = Options { profile, ..Options::default() };
    let patterns =
        std::env::var("OPDEV_BENCH_PATHS").unwrap_or_else(|_| settings.invocations[0].paths.join(" "));
    let patterns: Vec<String> = patterns.split(' ').map(str::to_owned).collect();

    let find = median(|| files::packages(&root, "", &patterns, Wanted::Kinds));
    let packages = files::packages(&root, "", &patterns, Wanted::Kinds);
    let disk = Disk::new(&root);
    let first = Generator::new().generate(&disk, &packages, &options);
    let bytes: usize = first.read.iter().filter_map(|file| disk.read(file)).map(|text| text.len()).sum();
    println!(
        "{}: {} packages, {} files of its own ({} KiB), {} CRDs, {} diagnostics",
        root.display(),
        packages.len(),
        first.read.len(),
        bytes / 1024,
        first.crds.len(),
        first.diagnostics.len()
    );
    println!("find the packages                    {:8.2} ms", ms(find));
    let cold = median(|| Generator::new().generate(&disk, &packages, &options));
    println!("parse to CRDs, cold                  {:8.2} ms", ms(cold));
    let yaml = median(|| {
        first
            .crds
            .iter()
            .map(|crd| opdev_types::emit::crd(&crd.object, "").unwrap().text.len())
            .sum::<usize>()
    });
    println!("CRDs to YAML                         {:8.2} ms", ms(yaml));

    let file = first
        .crds
        .iter()
        .flat_map(|crd| &crd.files)
        .max_by_key(|file| disk.read(file).map(|text| text.len()));
    let file = file.unwrap().clone();
    let original = disk.read(&file).unwrap();
    let edited = Edited { disk: &disk, texts: RefCell::default() };
    let mut generator = Generator::new();
    generator.generate(&edited, &packages, &options);
    let mut count = 0;
    let warm = median(|| {
        count += 1;
        let text = original.replacen(" json:\"", &format!(" json:\"x{count}"), 1).replacen(
            "`json:\"",
            &format!("`json:\"x{count}"),
            if original.contains(" json:\"") { 0 } else { 1 },
        );
        edited.texts.borrow_mut().insert(file.clone(), text.into());
        generator.generate(&edited, &packages, &options)
    });
    println!(
        "after an edit of {file:<19} {:8.2} ms   {:.1} times faster than cold",
        ms(warm),
        ratio(cold, warm)
    );

    scripts();
    begin();
    if let Some(controller_gen) = std::env::var_os("OPDEV_CONTROLLER_GEN") {
        let out = tempfile::tempdir().unwrap();
        let run = |runs| {
            median_of(runs, || {
                let mut command = Command::new(&controller_gen);
                command.arg("crd").args(patterns.iter().map(|path| format!("paths={path}")));
                command.arg(format!("output:crd:dir={}", out.path().display())).current_dir(&root);
                command.status().unwrap().success()
            })
        };
        let theirs = run(3);
        println!(
            "controller-gen                       {:8.2} ms   {:.0} times the cold time",
            ms(theirs),
            ratio(theirs, cold)
        );
    }
}

/// A new operator in Go with one kind, into a fresh folder, and its files written without any thought. The
/// whole of it has to stay under 50 ms.
fn begin() {
    let options = InitOptions {
        domain: "my.domain".to_owned(),
        project_name: "bench".to_owned(),
        layout: Layout::Go,
        multigroup: false,
        repo: String::new(),
    };
    let api = ApiOptions {
        group: "app".to_owned(),
        version: "v1".to_owned(),
        kind: "Site".to_owned(),
        plural: String::new(),
        namespaced: true,
        reconciler: Reconciler::Go,
        crd_schema: CrdSchema::Open,
        force: false,
        year: "2026".to_owned(),
    };
    let made = || {
        let folder = tempfile::tempdir().unwrap();
        for step in 0..2 {
            let disk = OnDisk::new(folder.path());
            let mut draft = Draft::new(&disk, false);
            if step == 0 {
                opdev_scaffold::init(&options, &mut draft).unwrap();
            } else {
                opdev_scaffold::create_api(&api, &mut draft).unwrap();
            }
            opdev_scaffold::write::write(folder.path(), &draft).unwrap();
        }
        folder
    };
    let whole = median(made);
    let like = made();
    let mut files = Vec::new();
    let mut open = vec![like.path().to_owned()];
    while let Some(folder) = open.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else {
                files.push((
                    path.strip_prefix(like.path()).unwrap().to_owned(),
                    std::fs::read(&path).unwrap(),
                ));
            }
        }
    }
    let plain = median(|| {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in &files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        folder
    });
    println!(
        "init --go and create api, {} files   {:8.2} ms   {:.1} times writing the same files",
        files.len(),
        ms(whole),
        ratio(whole, plain)
    );
}

/// A cluster that nobody asks.
struct Nothing;

impl Host for Nothing {
    fn get(&self, _: &Read) -> Result<Option<Arc<serde_json::Value>>, HostError> {
        Ok(None)
    }

    fn list(&self, _: &Read) -> Result<Vec<Arc<serde_json::Value>>, HostError> {
        Ok(Vec::new())
    }

    fn kind(&self, text: &str) -> Result<Gvk, HostError> {
        Err(HostError::new(HostErrorKind::NotServed, format!("no kind {text}")))
    }

    fn fetch(&self, _: &Fetch) -> Result<Fetched, HostError> {
        Err(HostError::new(HostErrorKind::NotAllowed, "no network"))
    }

    fn exec(&self, _: &Exec) -> Result<Executed, HostError> {
        Err(HostError::new(HostErrorKind::NotAllowed, "no programs"))
    }

    fn log(&self, _: &str, _: &str) {}
}

/// The demo's PodSet reconciler, from text to a program and from an object with five pods to an answer.
fn scripts() {
    let path = "config/reconcilers/podset.ts";
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let files = BTreeMap::from([(path.to_owned(), Arc::<str>::from(text))]);
    let load = median(|| program::load(path, &files).unwrap());
    let script = program::load(path, &files).unwrap();
    let object = |kind: &str, version: &str, name: &str, rest: serde_json::Value| {
        let mut object = serde_json::json!({"apiVersion": version, "kind": kind});
        object["metadata"] = serde_json::json!({"name": name, "namespace": "default", "uid": name});
        object["spec"] = rest["spec"].clone();
        object["status"] = rest["status"].clone();
        Arc::new(object)
    };
    let pod = serde_json::json!({"spec": {"containers": []}, "status": {"phase": "Running"}});
    let children = (0..5).map(|n| object("Pod", "v1", &format!("pod{n}"), pod.clone())).collect();
    let set = serde_json::json!({"spec": {"replicas": 5}, "status": {}});
    let observed = Observed {
        parent: object("PodSet", "app.example.com/v1alpha1", "set", set),
        children,
        releases: Vec::new(),
        finalizing: false,
        now: "2026-01-02T03:04:05Z".to_owned(),
        seed: 1,
    };
    let limits = Limits::default();
    script.reconcile(&observed, &Nothing, &limits).unwrap();
    let call = median(|| script.reconcile(&observed, &Nothing, &limits).unwrap());
    println!("load a script                        {:8.2} ms", ms(load));
    println!("call a script                        {:8.2} ms", ms(call));
}

fn median<T>(run: impl FnMut() -> T) -> Duration {
    median_of(RUNS, run)
}

fn median_of<T>(runs: usize, mut run: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let begun = Instant::now();
            std::hint::black_box(run());
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(1e-9)
}

/// Ten kinds in two groups, each with structs in structs, markers and comments: about 6,000 lines.
fn made_up() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path: &Path = &folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("go.mod", "module example.com/bench\n\ngo 1.24\n");
    for group in ["one", "two"] {
        write(&format!("api/{group}/v1/doc.go"), &format!("// +groupName={group}.example.com\npackage v1\n"));
        for number in 0..5 {
            let kind = format!("Bench{}", ["Alpha", "Beta", "Gamma", "Delta", "Omega"][number]);
            write(&format!("api/{group}/v1/{}_types.go", kind.to_lowercase()), &kind_text(&kind));
        }
    }
    folder
}

fn kind_text(kind: &str) -> String {
    let mut text = "package v1\n\nimport metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n".to_owned();
    for part in 0..20 {
        let _ = write!(
            text,
            "// {kind}Part{part} is one part of many, and it is described in two lines so that\n// there is something to read.\ntype {kind}Part{part} struct {{\n"
        );
        for (name, ty, marker) in [
            ("Image", "string", "+kubebuilder:validation:MinLength=1"),
            ("Replicas", "*int32", "+kubebuilder:validation:Minimum=0"),
            ("Mode", "string", "+kubebuilder:validation:Enum=Always;Never"),
            ("Labels", "map[string]string", "+optional"),
            ("Hosts", "[]string", "+listType=set"),
        ] {
            let json = name.to_lowercase();
            let _ = write!(
                text,
                "\t// {name} says what {json} is.\n\t// {marker}\n\t{name} {ty} `json:\"{json},omitempty\"`\n\n"
            );
        }
        if part > 0 {
            let _ = writeln!(
                text,
                "\t// Before is the part before.\n\t// +optional\n\tBefore *{kind}Part{} `json:\"before,omitempty\"`",
                part / 2
            );
        }
        text.push_str("}\n\n");
    }
    let _ = write!(
        text,
        "// {kind}Spec says what is wanted.\ntype {kind}Spec struct {{\n\tFirst {kind}Part19 `json:\"first\"`\n\tSecond []{kind}Part18 `json:\"second,omitempty\"`\n}}\n\n\
         // +kubebuilder:object:root=true\n// +kubebuilder:subresource:status\n\n// {kind} is a kind.\ntype {kind} struct {{\n\tmetav1.TypeMeta `json:\",inline\"`\n\
         \tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n\n\tSpec {kind}Spec `json:\"spec,omitempty\"`\n}}\n"
    );
    text
}
