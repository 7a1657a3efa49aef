//! The ranks of `docs/architecture.md`, the homes of the heavy crates and the sizes of files, as tests.
//!
//! `modules` reads the modules of a package, `graph` finds which names which, `cycles` holds both against the
//! page. `builds` is about what Cargo builds of it.

mod builds;
mod cycles;
mod graph;
mod modules;
mod unused;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use modules::{Package, changed_by_index, lines_without_tests};
use opdev_helm::chart;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// All packages, from the top: the folder of each and its modules. They are read once.
fn packages() -> &'static [(&'static str, Package)] {
    static PACKAGES: OnceLock<Vec<(&str, Package)>> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        members().iter().map(|folder| (*folder, Package::read(&root().join(folder), "lib.rs"))).collect()
    })
}

/// The folders of the packages as the workspace names them; that of the commands is `src/cli`.
fn members() -> &'static [&'static str] {
    static MEMBERS: OnceLock<Vec<&str>> = OnceLock::new();
    static TEXT: OnceLock<String> = OnceLock::new();
    MEMBERS.get_or_init(|| {
        let text = TEXT.get_or_init(|| fs::read_to_string(root().join("Cargo.toml")).unwrap());
        let list = text.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
        let folders =
            list.split(',').map(|line| line.trim().trim_matches('"')).filter(|line| !line.is_empty());
        folders.map(|folder| if folder == "." { "src/cli" } else { folder }).collect()
    })
}

/// The name of a room: that of its folder.
fn room(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap()
}

/// Each room with those that it names among its dependencies. What only tests need is left out.
fn arrows() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let by_package: BTreeMap<String, &str> = members()
        .iter()
        .map(|folder| (format!("opdev-{}", room(folder).replace('_', "-")), room(folder)))
        .collect();
    let named = |folder: &&'static str| {
        let file =
            if *folder == "src/cli" { "Cargo.toml".to_owned() } else { format!("{folder}/Cargo.toml") };
        let text = fs::read_to_string(root().join(file)).unwrap();
        let own = text.split_once("\n[dependencies]\n").map_or("", |(_, rest)| rest);
        let own = own.split_once("\n[").map_or(own, |(own, _)| own);
        let names = own.lines().filter_map(|line| line.split(['.', ' ']).next());
        (room(folder), names.filter_map(|name| by_package.get(name).copied()).collect())
    };
    members().iter().map(named).collect()
}

/// All paths of two or more segments in the code of all packages, with the file (from `src/` on) and the
/// line. Comments, strings and tests are left out; the groups of a `use` are taken apart.
fn named_paths() -> Vec<(String, usize, String)> {
    let mut found = Vec::new();
    let program = ("src/cli", Package::read(&root().join("src/cli"), "main.rs"));
    for (folder, package) in packages().iter().chain([&program]) {
        for module in &package.modules {
            let file = Path::new(folder).join(&module.file).display().to_string();
            let file = file.trim_start_matches("src/").to_owned();
            found.extend(module.paths.iter().map(|named| (file.clone(), named.line, named.path.join("::"))));
        }
    }
    assert!(found.len() > 10_000, "only {} paths were read: a package is not seen", found.len());
    found
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// The longest way down from a room.
fn rank(room: &str, arrows: &BTreeMap<&str, BTreeSet<&str>>) -> usize {
    arrows[room].iter().map(|named| rank(named, arrows) + 1).max().unwrap_or(0)
}

/// Cargo holds the arrows; the page says where they lead.
#[test]
fn the_drawing_is_cargos_graph() {
    let arrows = arrows();
    let mut ranks: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for room in arrows.keys() {
        ranks.entry(rank(room, &arrows)).or_default().insert(room);
    }
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let mut drawn: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for line in page.split("```").nth(1).unwrap().lines() {
        let Some((number, rest)) = line.trim().split_once("  ") else { continue };
        let Ok(number) = number.parse() else { continue };
        let names = rest.split_once("  ").map_or(rest, |(names, _)| names);
        drawn.entry(number).or_default().extend(names.split_whitespace());
    }
    assert_eq!(drawn, ranks);
}

/// Larger packages than this compile slowly and have no one topic. None of the exceptions grows.
#[test]
fn packages_have_at_most_eight_thousand_lines() {
    let larger = [
        ("src/controlplane/controllers", 8_700),
        ("src/object", 15_600),
        ("src/helm", 8_400),
        ("src/helm/template", 13_200),
        ("src/types", 14_500),
        ("src/tui", 11_000),
    ];
    let mut wrong = Vec::new();
    for folder in members() {
        let inner: Vec<_> =
            members().iter().filter(|other| other.starts_with(&format!("{folder}/"))).collect();
        let own = rust_files(&root().join(folder)).into_iter().filter(|file| {
            let file = name(file);
            !file.contains("/tests") && !inner.iter().any(|inner| file.starts_with(&format!("{inner}/")))
        });
        let lines: usize = own.map(|file| lines_without_tests(&fs::read_to_string(file).unwrap())).sum();
        let most = larger.iter().find(|(at, _)| at == folder).map_or(8_000, |(_, most)| *most);
        if lines > most {
            wrong.push(format!("{folder}: {lines} lines without tests, at most {most}"));
        }
    }
    let way_out = "move what has a topic of its own into a package below (docs/architecture.md)";
    assert!(wrong.is_empty(), "too many lines; {way_out}:\n{}", wrong.join("\n"));
}

/// A folder is read at a glance. None of the exceptions grows.
#[test]
fn folders_have_at_most_twenty_five_entries() {
    let larger = [
        ("src/controlplane/controllers", 42),
        ("src/controlplane/registry", 37),
        ("src/object", 28),
        ("src/object/cel", 39),
        ("src/helm/template", 34),
        ("src/types/go", 30),
        ("src/kustomize", 28),
        ("src/cli", 34),
        ("src/event", 28),
        ("src/tui", 27),
        ("src/cluster", 27),
    ];
    let mut wrong = Vec::new();
    let mut open = vec![root().join("src")];
    while let Some(folder) = open.pop() {
        let is_licence = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("LICENSE-"))
        };
        let entries: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !is_licence(path))
            .collect();
        let at = name(&folder);
        let most = larger.iter().find(|(known, _)| *known == at).map_or(25, |(_, most)| *most);
        let is_code =
            entries.iter().any(|path| path.extension().is_some_and(|ext| ext == "rs")) || at == "src";
        if is_code && entries.len() > most {
            wrong.push(format!("{at}: {} entries", entries.len()));
        }
        open.extend(entries.into_iter().filter(|path| path.is_dir()));
    }
    assert!(wrong.is_empty(), "folders with more than 25 entries:\n{}", wrong.join("\n"));
}

#[test]
fn heavy_crates_have_one_home() {
    let homes: [(&str, &[&str]); 20] = [
        ("ratatui", &["tui"]),
        ("crossterm", &["tui"]),
        ("notify", &["os/watcher"]),
        ("clap", &["cli"]),
        ("clap_complete", &["cli/complete.rs"]),
        ("clap_mangen", &["cli/about.rs"]),
        ("tracing_appender", &["cli"]),
        ("hyper", &["controlplane"]),
        ("hyper_util", &["controlplane", "cluster/streams.rs"]),
        ("tokio_rustls", &["controlplane"]),
        ("rcgen", &["controlplane"]),
        ("x509_cert", &["controlplane"]),
        ("redb", &["controlplane/storage"]),
        ("lz4_flex", &["object/pack.rs"]),
        ("kube_cel", &["object/cel"]),
        ("rquickjs", &["types/script"]),
        ("tree_sitter", &["types"]),
        ("tree_sitter_go", &["types/go"]),
        ("ureq", &["operator/release/script/outside.rs", "pull"]),
        ("tar", &["pull/pack.rs", "ship/image"]),
    ];
    let mut wrong = Vec::new();
    for (file, line, path) in named_paths() {
        for (krate, homes) in homes {
            let is_named = path.split("::").next() == Some(krate);
            if is_named && !homes.iter().any(|home| file.starts_with(home)) {
                wrong.push(format!("src/{file}:{line} uses {krate}, which lives in {}", homes.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "crates away from home:\n{}", wrong.join("\n"));
}

#[test]
fn pure_rooms_stay_pure() {
    let banned = [
        "std::fs",
        "std::net::Tcp",
        "std::net::Udp",
        "std::process",
        "std::env",
        "std::thread",
        "tokio::",
        "SystemTime",
        "Instant::now",
        "Timestamp::now",
    ];
    // The only files of these rooms that reach outside, and why.
    let reasons = [
        // Reads a chart's folder into a file set.
        ("helm/chart/read.rs", "std::fs"),
        // The way of events to the bus: it waits for room, and for nothing else.
        ("event/sink.rs", "tokio::"),
        // The limit of a script's call.
        ("sources/deadline.rs", "Instant::now"),
        // Writes what the rest of the room plans, all of it or nothing.
        ("scaffold/write.rs", "std::fs"),
        ("scaffold/unfinished.rs", "std::fs"),
        // Runs a render's templates on several cores; what is made does not depend on the order.
        ("helm/spread.rs", "std::thread"),
        // A script's call runs on a thread of its own, with a limit of stack and time.
        ("types/script/run.rs", "std::thread"),
        ("types/script/time.rs", "std::thread"),
    ];
    let rooms = [
        "object",
        "helm",
        "kustomize",
        "types",
        "event",
        "event/mod.rs",
        "ship/image",
        "sources",
        "scaffold",
        "state",
    ];
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for (file, line, path) in named_paths() {
        if !rooms.contains(&file.split('/').next().unwrap()) {
            continue;
        }
        for word in banned.iter().filter(|word| path.contains(**word)) {
            match reasons.iter().find(|(at, what)| *at == file && what == word) {
                Some(reason) => seen.push(reason),
                None => wrong.push(format!("src/{file}:{line} {path}")),
            }
        }
    }
    assert!(wrong.is_empty(), "pure rooms that reach outside:\n{}", wrong.join("\n"));
    let stale: Vec<_> = reasons.iter().filter(|reason| !seen.contains(reason)).collect();
    assert!(stale.is_empty(), "reasons that nothing needs any more: {stale:?}");
}

/// A project's files may be links that lead out of it. One module opens files for writing in a project, and
/// follows none.
#[test]
fn one_file_writes_in_projects() {
    let calls = [
        "fs::write",
        "fs::rename",
        "fs::copy",
        "fs::hard_link",
        "fs::set_permissions",
        "fs::create_dir",
        "fs::create_dir_all",
        "fs::DirBuilder",
        "DirBuilder::new",
        "File::create",
        "File::create_new",
        "File::options",
        "fs::OpenOptions",
        "OpenOptions::new",
        "tracing_appender::rolling",
    ];
    let elsewhere = [
        // The one.
        "os/private_folder.rs",
        // A new folder of a random name among the temporary files.
        "inner_loop/requests/drafts/file.rs",
        // Folders above the user's own state.
        "cluster/owner.rs",
        "project/preferences.rs",
        "project/trust/store.rs",
        // Below .opdev/bin, which `dev/program` has examined and emptied.
        "program/build/mod.rs",
        "program/supervise.rs",
        "program/supervise/going_back.rs",
        // Files for Go builds, in the user's own cache, and the socket that it has just made.
        "program/trace/instrument/overlay.rs",
        "program/trace/listener.rs",
        // The folder that the user named for envtest.
        "cli/envtest/mod.rs",
        // Checkouts of versions, in the user's own cache.
        "upgrade/checkout.rs",
    ];
    let packages = ["object", "helm", "kustomize", "types", "controlplane"];
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (file, line, path) in named_paths() {
        let spaced = format!("::{path}::");
        let writes = calls.iter().any(|call| spaced.contains(&format!("::{call}::")));
        if !writes || packages.contains(&file.split('/').next().unwrap()) {
            continue;
        }
        if elsewhere.contains(&file.as_str()) {
            seen.insert(file);
        } else {
            wrong.push(format!("src/{file}:{line} {path}"));
        }
    }
    assert!(wrong.is_empty(), "use `opdev_os::private_folder` instead:\n{}", wrong.join("\n"));
    let stale: Vec<_> = elsewhere.iter().filter(|file| !seen.contains(**file)).collect();
    assert!(stale.is_empty(), "files that write nothing any more: {stale:?}");
}

/// A file that came with a project may be a device, a pipe or a link to either, and a folder may be the whole
/// disk. One file reads them, with limits.
#[test]
fn one_file_reads_what_came_with_a_project() {
    let calls = [
        "fs::read",
        "fs::read_to_string",
        "fs::read_dir",
        "File::open",
        "File::options",
        "OpenOptions::new",
        "WalkDir::new",
    ];
    let elsewhere = [
        // The one.
        "os/read.rs",
        // Follows the file of events that opdev writes itself.
        "project/journal.rs",
        // Files of the kernel about processes.
        "ship/operate/orphans.rs",
        "os/sockets.rs",
        "ship/operate/process.rs",
        "program/webhooks.rs",
        // A file that the user names on the command line may be a pipe of a shell.
        "cli/render.rs",
        "cli/envtest/apiserver.rs",
        // The user's own: logins, certificates, kubeconfigs, Helm's home, what a pod finds in its cluster.
        "pull/logins.rs",
        "ship/operate/servers.rs",
        "cli/operate.rs",
        "cluster/client_certificate.rs",
        "cluster/credentials.rs",
        "cluster/in_cluster.rs",
        "cluster/webhook_certificates.rs",
        // Below the user's cache or in folders that opdev has just made.
        "program/trace/instrument/overlay.rs",
        // Names in .opdev, up to a bound, for sockets that were left.
        "program/trace/listener.rs",
        "inner_loop/requests/drafts/file.rs",
        "cli/serve.rs",
    ];
    let packages = ["object", "helm", "kustomize", "types", "controlplane"];
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (file, line, path) in named_paths() {
        let spaced = format!("::{path}::");
        let reads = calls.iter().any(|call| spaced.contains(&format!("::{call}::")));
        if !reads || packages.contains(&file.split('/').next().unwrap()) {
            continue;
        }
        if elsewhere.contains(&file.as_str()) {
            seen.insert(file);
        } else {
            wrong.push(format!("src/{file}:{line} {path}"));
        }
    }
    assert!(wrong.is_empty(), "use `opdev_os::read` instead:\n{}", wrong.join("\n"));
    let stale: Vec<_> = elsewhere.iter().filter(|file| !seen.contains(**file)).collect();
    assert!(stale.is_empty(), "files that read nothing any more: {stale:?}");
}

/// `value["name"] = …` panics where the value is a text or a list, and servers, charts and registries send
/// what they like.
#[test]
fn foreign_json_is_changed_by_a_function_that_cannot_panic() {
    // Changes only what it has just made itself.
    let own = ["src/scaffold/chart.rs"];
    let packages = ["object", "helm", "kustomize", "types", "controlplane"];
    let mut wrong = Vec::new();
    for path in rust_files(&root().join("src")) {
        let file = name(&path);
        let room = file.trim_start_matches("src/").split('/').next().unwrap().to_owned();
        if packages.contains(&room.as_str()) || own.contains(&file.as_str()) || file.contains("/tests") {
            continue;
        }
        let lines = changed_by_index(&fs::read_to_string(&path).unwrap());
        wrong.extend(lines.into_iter().map(|line| format!("{file}:{line}")));
    }
    assert!(wrong.is_empty(), "use `opdev_object::meta::put` instead:\n{}", wrong.join("\n"));
    let seen = changed_by_index(
        "fn a() { x[\"a\"] = 1; x.y[\"a\"][0][\"b\"] = 1; f(&mut x[\"a\"]); x[\"a\"].as_object_mut(); }\n\
         fn b() { if x[\"a\"] == 1 {} f(&x[\"a\"]); let z = [\"a\"]; for q in [\"a\"] {} x[\"a\"].as_str(); }\n",
    );
    assert_eq!(seen.iter().filter(|line| **line == 1).count(), 5, "{seen:?}");
    assert_eq!(seen.len(), 5, "{seen:?}");
}

/// Names from archives, and what registries, servers and programs say, may hold sequences that a terminal
/// obeys. The streams of a command show them as escapes; what is for programs says so by its name.
#[test]
fn commands_print_through_one_file() {
    // Lines of the log are escaped by their own layer; the words of a signal are opdev's own.
    let elsewhere = ["cli/visible.rs", "cli/logging.rs", "cli/signals.rs"];
    // Frames and lines of events, whose texts are masked and made visible there; what envtest reads from its
    // programs.
    let rooms = ["cli/print/", "cli/envtest/"];
    for (file, line, path) in named_paths() {
        let prints = ["io::stdout", "io::stderr"].iter().any(|stream| path.ends_with(stream));
        let elsewhere = elsewhere.contains(&file.as_str()) || rooms.iter().any(|room| file.starts_with(room));
        let wrong = prints && file.starts_with("cli/") && !elsewhere;
        assert!(!wrong, "src/{file}:{line} names {path}: use `visible::out`, `err` or `machine`");
    }
}

/// A published package contains the files that it embeds. Golden cases of unit tests are for the repository
/// only.
#[test]
fn packages_embed_only_what_lies_in_them() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for folder in members().iter().filter(|folder| **folder != "src/cli") {
        let folder = root().join(folder);
        for file in rust_files(&folder) {
            let text = fs::read_to_string(&file).unwrap();
            for embedded in text.split("include_bytes!(\"").chain(text.split("include_str!(\"")).skip(1) {
                let Some((path, _)) = embedded.split_once("\")") else { continue };
                let real = file.parent().unwrap().join(path).canonicalize();
                let Ok(real) = real else { continue };
                seen += 1;
                if !real.starts_with(&folder) && !real.starts_with(root().join("tests/golden")) {
                    wrong.push(format!("{} embeds {path}", name(&file)));
                }
            }
        }
    }
    assert!(seen > 15, "only {seen} embedded files were seen");
    assert!(wrong.is_empty(), "a published package would not compile:\n{}", wrong.join("\n"));
}

/// Whoever has one package only has its licence, too, and reads what it is.
#[test]
fn each_package_has_its_licences_and_a_readme() {
    let mut wrong = Vec::new();
    for folder in members().iter().filter(|folder| **folder != "src/cli") {
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let own = fs::read_to_string(root().join(folder).join(licence));
            if own.ok() != fs::read_to_string(root().join(licence)).ok() {
                wrong.push(format!("{folder} has no {licence}: make it a link to the one of the repository"));
            }
        }
        let settings = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        if !settings.lines().any(|line| line.starts_with("readme")) {
            wrong.push(format!("{folder}/Cargo.toml has no `readme.workspace = true`"));
        }
    }
    assert!(wrong.is_empty(), "packages that lack what a published one has:\n{}", wrong.join("\n"));
}

/// All rooms that a room is built of.
fn below<'a>(room: &'a str, arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let named = arrows[room].iter().copied();
    named.clone().chain(named.flat_map(|named| below(named, arrows))).collect()
}

#[test]
fn rooms_do_not_know_what_they_work_without() {
    let arrows = arrows();
    for (room, unknown) in [
        // Embedded or real is one client.
        ("operator", "controlplane"),
        ("operator", "apimachinery"),
        // A controller sees a view and asks for writes; a rule of one object sees that object.
        ("controllers", "storage"),
        ("controllers", "admission"),
        ("apis", "storage"),
        ("storage", "apis"),
        // It sees a state and makes requests.
        ("tui", "client"),
        ("tui", "os"),
        ("state", "client"),
        ("findings", "client"),
        ("facts", "findings"),
        ("trace", "findings"),
        ("scaffold", "client"),
        ("project", "client"),
    ] {
        assert!(!below(room, &arrows).contains(unknown), "{room} knows {unknown}");
    }
}

#[test]
fn files_stay_small() {
    let mut wrong = Vec::new();
    for path in rust_files(&root().join("src")) {
        let text = fs::read_to_string(&path).unwrap();
        let lines = lines_without_tests(&text);
        if lines > 600 {
            wrong.push(format!("{}: {lines} lines", name(&path)));
        }
    }
    assert!(wrong.is_empty(), "files over 600 lines, split at the noun:\n{}", wrong.join("\n"));
}

/// The demo is this repository as it stands: `opdev run` reads every folder with a `Chart.yaml`.
#[test]
fn every_chart_of_the_repository_loads() {
    let mut charts = Vec::new();
    let mut open = vec![root().to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let is_ours = path
                .file_name()
                .is_some_and(|name| name != "target" && !name.to_string_lossy().starts_with('.'));
            if path.join("Chart.yaml").is_file() {
                charts.push(path);
            } else if is_ours && path.is_dir() {
                open.push(path);
            }
        }
    }
    assert!(charts.len() > 3, "{charts:?}");
    for folder in charts {
        let loaded = chart::Chart::load(&chart::read_dir(&folder).unwrap());
        assert!(loaded.is_ok(), "{}: {:?}", name(&folder), loaded.err());
    }
}

#[test]
fn each_file_opens_with_a_module_doc() {
    let bare: Vec<_> = rust_files(&root().join("src"))
        .into_iter()
        .filter(|path| !fs::read_to_string(path).unwrap().starts_with("//!"))
        .map(|path| name(&path))
        .collect();
    assert!(bare.is_empty(), "files without a module doc:\n{}", bare.join("\n"));
}

#[test]
fn names_say_something() {
    let banned = ["utils", "util", "helpers", "common", "core", "misc", "manager2", "service", "handler"];
    for path in rust_files(&root().join("src")) {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let folder = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        assert!(
            !banned.contains(&stem) && !banned.contains(&folder),
            "{} has a name that says nothing",
            name(&path)
        );
    }
}

#[test]
fn every_path_the_architecture_page_names_exists() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    assert!(page.lines().count() <= 150, "docs/architecture.md has more than 150 lines");
    for quoted in page.split('`').skip(1).step_by(2) {
        let is_path = ["src/", "tests/", "docs/", "config/", "charts/", "assets/", "samples/", "benches/"]
            .iter()
            .any(|start| quoted.starts_with(start));
        if is_path && !quoted.contains(['*', '<', ' ']) {
            assert!(
                root().join(quoted).exists(),
                "docs/architecture.md names {quoted}, which does not exist"
            );
        }
    }
}

#[test]
fn the_top_level_holds_only_what_it_should() {
    let allowed = [
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "CHANGELOG.md",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "src",
        "charts",
        "config",
        "samples",
        "assets",
        "tests",
        "benches",
        "docs",
        "fuzz",
        "target",
    ];
    for entry in fs::read_dir(root()).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            file.starts_with('.') || allowed.contains(&file.as_str()),
            "{file} does not belong at the top level"
        );
    }
    // An editor's own folder may lie here, but git keeps none; an archive of the sources has no git.
    let tracked = std::process::Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let tracked =
        tracked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let dotted = [
        ".ci",
        ".clippy.toml",
        ".deny.toml",
        ".editorconfig",
        ".github",
        ".gitignore",
        ".justfile",
        ".rustfmt.toml",
        ".typos.toml",
    ];
    for path in tracked.split('\0').filter(|path| path.starts_with('.')) {
        let top = path.split('/').next().unwrap_or_default();
        assert!(dotted.contains(&top), "{path} does not belong into git");
    }
}

/// Types that have the name of another one of their room: a reader has to look twice. The list only shrinks.
#[test]
fn a_name_means_one_thing_in_a_room() {
    let mut named: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for folder in members() {
        let inner: Vec<_> =
            members().iter().filter(|other| other.starts_with(&format!("{folder}/"))).collect();
        for file in rust_files(&root().join(folder)) {
            let path = name(&file);
            if path.contains("/tests") || inner.iter().any(|inner| path.starts_with(&format!("{inner}/"))) {
                continue;
            }
            for (line, at) in fs::read_to_string(&file).unwrap().lines().zip(1..) {
                let line = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
                let line = line.strip_prefix("pub(super) ").unwrap_or(line);
                let kinds = ["struct ", "enum ", "trait ", "type "];
                let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else { continue };
                let own: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
                named.entry((folder, own)).or_default().push(format!("{path}:{at}"));
            }
        }
    }
    named.retain(|_, places| places.len() > 1);
    let row = |folder: &str, own: &str, times: usize| format!("{folder}\t{own}\t{times}\n");
    let rows = || named.iter().map(|((folder, own), places)| (row(folder, own, places.len()), own, places));
    let golden = root().join("tests/golden/double-names.tsv");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, rows().map(|(row, ..)| row).collect::<String>()).unwrap();
        return;
    }
    let known = fs::read_to_string(&golden).unwrap();
    let new: Vec<String> = rows()
        .filter(|(row, ..)| !known.contains(row.as_str()))
        .map(|(_, own, places)| format!("{own}: {}", places.join(" ")))
        .collect();
    assert!(new.is_empty(), "give one of them a name that says more:\n{}", new.join("\n"));
}
