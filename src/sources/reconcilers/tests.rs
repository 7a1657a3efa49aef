//! The file that reconciles each kind, and the words where none or two do.

use super::super::load::{Files, Loaded, Loader, Options};
use super::*;

/// The words about a kind that nothing reconciles.
const NOTHING: &str = "MemcachedBackup: it has no chart and no reconciler; `operator:` in opdev.yaml names a program of your \
                       own that reconciles it";
use crate::WatchesFile;
use crate::definitions::Types;
use opdev_event::KindHealth;

const WATCHES: &str = "- {group: a.b, version: v1, kind: One, chart: charts/one}\n";
const GOOD: &str = "export function reconcile(self) { return { children: [] }; }\n";

fn crd(group: &str, kind: &str) -> String {
    let plural = format!("{}s", kind.to_lowercase());
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{group}}}\n\
         spec:\n  group: {group}\n  scope: Namespaced\n  names: {{kind: {kind}, plural: {plural}}}\n  versions:\n  \
         - {{name: v1alpha1, served: true, storage: false}}\n  - {{name: v1, served: true, storage: true}}\n"
    )
}

fn files(reconcilers: &[(&str, &str)]) -> Files {
    let in_folder = |(name, text): &(&str, &str)| (format!("config/reconcilers/{name}"), Arc::from(*text));
    Files {
        watches: WatchesFile::of("watches.yaml".to_owned(), Ok(WATCHES.to_owned())),
        settings: None,
        charts: BTreeMap::new(),
        named_charts: BTreeMap::new(),
        types: Types::default(),
        patched: BTreeMap::new(),
        crds: vec![
            ("config/crd/sets.yaml".to_owned(), crd("a.b", "PodSet")),
            ("config/crd/backups.yaml".to_owned(), crd("a.b", "MemcachedBackup")),
        ],
        reconcilers: reconcilers.iter().map(in_folder).collect(),
        samples: Vec::new(),
        env: BTreeMap::new(),
        options: Arc::new(Options {
            reconciler_folders: vec!["config/reconcilers".to_owned()],
            ..Options::default()
        }),
    }
}

fn first(files: &Files) -> Loaded {
    Loader::default().load(files, &[], None, false).unwrap()
}

fn fed(loaded: &Loaded) -> Vec<String> {
    let programs = loaded.sources.watches.iter().filter(|watch| watch.program().is_some());
    programs.map(|watch| format!("{} {}", watch.gvk.api_version(), watch.path())).collect()
}

fn errors(loaded: &Loaded) -> Vec<String> {
    let of_reconcilers = loaded.errors.iter().filter(|error| {
        error.place.as_ref().is_some_and(|place| place.file.starts_with("config/") || place.file == "x.ts")
    });
    of_reconcilers
        .map(|error| format!("{} ({})", error.message, error.hint.as_deref().unwrap_or_default()))
        .collect()
}

#[test]
fn files_are_named_after_their_kind_whatever_the_case() {
    let loaded = first(&files(&[
        ("podset.ts", GOOD),
        ("memcached-backup.js", GOOD),
        ("shared.ts", "export const n = 1;\n"),
        ("podset.test.ts", GOOD),
        ("types.d.ts", "export function reconcile(): void;\n"),
    ]));
    assert_eq!(
        fed(&loaded),
        ["a.b/v1 config/reconcilers/memcached-backup.js", "a.b/v1 config/reconcilers/podset.ts"]
    );
    assert_eq!(errors(&loaded), [""; 0]);
}

#[test]
fn a_reconciler_without_a_kind_and_two_for_one_are_named() {
    let loaded = first(&files(&[("podst.ts", GOOD)]));
    assert_eq!(
        errors(&loaded),
        ["config/reconcilers/podst.ts reconciles no kind: none is named podst (did you mean podset?)"]
    );
    let loaded = first(&files(&[("podset.js", GOOD), ("podset.ts", GOOD)]));
    assert_eq!(fed(&loaded), ["a.b/v1 config/reconcilers/podset.js"]);
    assert_eq!(
        errors(&loaded),
        [
            "PodSet has two reconcilers, config/reconcilers/podset.js and config/reconcilers/podset.ts: the second \
          does not run (keep one of the two)"
        ]
    );
    let loaded = first(&files(&[("one.ts", GOOD)]));
    assert!(fed(&loaded).is_empty());
    assert!(
        errors(&loaded)[0]
            .starts_with("One has a chart, too (watches.yaml:1:3): config/reconcilers/one.ts does not run"),
        "{:?}",
        errors(&loaded)
    );
}

#[test]
fn a_file_may_say_its_kind_and_opdev_yaml_may_name_the_file() {
    let text = format!("export const kind = \"a.b/v1alpha1/PodSet\";\n{GOOD}");
    assert_eq!(fed(&first(&files(&[("any.ts", &text)]))), ["a.b/v1alpha1 config/reconcilers/any.ts"]);
    let text = format!("export const kind = \"a.b/v2/PodSet\";\n{GOOD}");
    assert_eq!(
        errors(&first(&files(&[("any.ts", &text)]))),
        ["a.b/v2, Kind=PodSet is not a served version of PodSet (served are v1alpha1, v1)"]
    );
    let mut named = files(&[]);
    named.reconcilers.insert("x.ts".to_owned(), Arc::from(GOOD));
    let options = |path: &str| {
        Arc::new(Options {
            reconcilers: [("podset".to_owned(), path.to_owned())].into(),
            ..Options::default()
        })
    };
    named.options = options("./x.ts");
    assert_eq!(fed(&first(&named)), ["a.b/v1 x.ts"]);
    named.options = options("y.ts");
    let loaded = first(&named);
    assert_eq!(loaded.errors.last().unwrap().message, "the reconciler of podset is not there: y.ts");
}

#[test]
fn one_name_of_two_kinds_asks_which() {
    let mut two = files(&[("podset.ts", GOOD)]);
    two.crds.push(("config/crd/other.yaml".to_owned(), crd("c.d", "PodSet")));
    let said = errors(&first(&two));
    assert!(said[0].starts_with("podset is the name of 2 kinds (say which one in the file"), "{said:?}");
}

#[test]
fn a_broken_edit_keeps_the_last_good_program_and_mending_it_serves() {
    let mut loader = Loader::default();
    let first = loader.load(&files(&[("podset.ts", GOOD)]), &[], None, false).unwrap();
    let program = |loaded: &Loaded| {
        let watch = loaded.sources.watch("a.b", "PodSet").unwrap();
        Arc::clone(watch.program().unwrap().program.as_ref().unwrap())
    };
    let broken = "export function reconcile(self) {\n  return { children: [ };\n}\n";
    let second = loader.load(&files(&[("podset.ts", broken)]), &[], None, false).unwrap();
    assert!(Arc::ptr_eq(&program(&first), &program(&second)));
    assert!(second.affected.is_empty());
    let health = &second.kinds.iter().find(|kind| kind.gvk.kind == "PodSet").unwrap().health;
    let KindHealth::Stale { problem } = health else { panic!("{health:?}") };
    let place = problem.place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("config/reconcilers/podset.ts", 2), "{problem:?}");
    assert!(problem.excerpt.as_deref().is_some_and(|text| text.contains("children: [ }")), "{problem:?}");
    let other = GOOD.replace("[]", "[ ]");
    let third = loader.load(&files(&[("podset.ts", &other)]), &[], None, false).unwrap();
    assert!(!Arc::ptr_eq(&program(&first), &program(&third)));
    assert_eq!(third.affected.iter().map(|gvk| gvk.kind.as_str()).collect::<Vec<_>>(), ["PodSet"]);
}

#[test]
fn a_program_gives_way_to_the_one_before_it_once_and_only_where_it_still_serves() {
    let mut loader = Loader::default();
    let gvk = Gvk::new("a.b", "v1", "PodSet");
    let problem = problem("config/reconcilers/podset.ts", "refused".to_owned());
    let program = |loaded: &Loaded| {
        let watch = loaded.sources.watch("a.b", "PodSet").unwrap();
        (watch.broken.is_some(), Arc::clone(watch.program().unwrap().program.as_ref().unwrap()))
    };
    let first = loader.load(&files(&[("podset.ts", GOOD)]), &[], None, false).unwrap();
    assert!(loader.go_back(&gvk, first.sources.number, &problem).is_none(), "nothing came before it");
    let other = files(&[("podset.ts", &GOOD.replace("[]", "[ ]"))]);
    let second = loader.load(&other, &[], None, false).unwrap();
    assert!(loader.go_back(&gvk, first.sources.number, &problem).is_none(), "a newer one serves");
    let back = loader.go_back(&gvk, second.sources.number, &problem).unwrap();
    assert_eq!(back.affected, std::slice::from_ref(&gvk));
    assert!(Arc::ptr_eq(&program(&first).1, &program(&back).1) && program(&back).0);
    assert!(loader.go_back(&gvk, back.sources.number, &problem).is_none(), "there is none before that");
    assert!(loader.load(&other, &[], None, false).is_none(), "the same file is not tried again");
    assert!(!loader.try_refused_again(&Gvk::new("a.b", "v1", "One")));
    assert!(!loader.try_refused_again(&gvk), "its problem names no kind");
}

#[test]
fn only_those_that_import_a_saved_module_are_loaded_again() {
    let uses = "import { n } from \"./lib/shared.ts\";\nexport function reconcile(self) { return { status: { n } }; }\n";
    let with =
        |shared: &str| files(&[("podset.ts", uses), ("memcachedbackup.ts", GOOD), ("lib/shared.ts", shared)]);
    let mut loader = Loader::default();
    let first = loader.load(&with("export const n = 1;\n"), &[], None, false).unwrap();
    assert_eq!((fed(&first).len(), errors(&first)), (2, vec![]));
    let second = loader.load(&with("export const n = 2;\n"), &[], None, false).unwrap();
    assert_eq!(second.affected.iter().map(|gvk| gvk.kind.as_str()).collect::<Vec<_>>(), ["PodSet"]);
}

#[test]
fn kinds_that_nothing_reconciles_are_shown() {
    let mut some = files(&[("podset.ts", GOOD)]);
    let why = |loaded: &Loaded| -> Vec<String> {
        loaded.sources.shown.iter().map(|shown| format!("{}: {}", shown.gvk.kind, shown.why)).collect()
    };
    assert_eq!(why(&first(&some)), [NOTHING]);
    some.options = Arc::new(Options {
        reconciler_folders: vec!["config/reconcilers".to_owned()],
        only: vec!["podset".to_owned()],
        scale: [("podset".to_owned(), ".spec.n".to_owned())].into(),
        ..Options::default()
    });
    let loaded = first(&some);
    assert_eq!(why(&loaded), ["One: --only leaves it out", NOTHING]);
    assert_eq!(loaded.sources.watches.len(), 1);
    assert_eq!(loaded.kinds[0].scale, ".spec.n");
}

fn with_chart(reconcilers: &[(&str, &str)], settings: &str) -> Files {
    let chart = [("Chart.yaml", "apiVersion: v2\nname: one\nversion: 0.1.0\n"), ("templates/a.yaml", "")];
    let chart = chart.into_iter().map(|(path, text)| (path, text.as_bytes())).collect();
    Files {
        charts: BTreeMap::from([("charts/one".to_owned(), Ok(chart))]),
        settings: Some(("opdev.yaml".to_owned(), settings.to_owned())),
        ..files(reconcilers)
    }
}

#[test]
fn a_script_stands_beside_a_chart_or_takes_its_place() {
    let values = "export function values() { return {}; }\n";
    let loaded = first(&with_chart(&[("one.ts", values)], ""));
    let chart = loaded.sources.watches[0].chart().unwrap();
    assert_eq!(chart.script.as_ref().unwrap().path, "config/reconcilers/one.ts");
    assert!(errors(&loaded).is_empty() && chart.is_loaded());
    // Both would reconcile the kind.
    assert_eq!(
        errors(&first(&with_chart(&[("one.ts", GOOD)], ""))),
        [
            "One has a chart, too (watches.yaml:1:3): config/reconcilers/one.ts does not run (remove the entry at \
          watches.yaml:1:3 or config/reconcilers/one.ts: one kind has one reconciler)"
        ]
    );
    let alone = errors(&first(&with_chart(&[("podset.ts", values)], "")));
    assert!(
        alone[0]
            .starts_with("config/reconcilers/podset.ts has functions for a chart, and PodSet has no chart"),
        "{alone:?}"
    );
    // Nothing is installed without the script that belongs to it.
    let broken = first(&with_chart(&[("one.ts", "export function values( {\n")], ""));
    assert!(matches!(broken.kinds[0].health, KindHealth::Disabled { .. }), "{:?}", broken.kinds);
}

#[test]
fn a_saved_script_of_a_chart_is_tried_and_a_broken_one_replaces_nothing() {
    let mut loader = Loader::default();
    let with = |text: &str| with_chart(&[("one.ts", text)], "");
    loader.load(&with("export function values() { return { a: 1 }; }\n"), &[], None, false).unwrap();
    let second =
        loader.load(&with("export function values() { return { a: 2 }; }\n"), &[], None, false).unwrap();
    assert_eq!((second.affected.len(), second.trials.len()), (1, 1));
    assert!(second.trials[0].is_program());
    let broken = loader.load(&with("export function values() { return {\n"), &[], None, false).unwrap();
    assert!(broken.affected.is_empty() && matches!(broken.kinds[0].health, KindHealth::Stale { .. }));
    let script = broken.sources.watches[0].chart().unwrap().script.clone().unwrap();
    assert!(script.files.values().any(|text| text.contains("a: 2")), "{script:?}");
}

#[test]
fn options_of_opdev_yaml_count_at_once_and_come_before_those_of_watches() {
    let mut loader = Loader::default();
    let mut load = |settings: &str| {
        let mut files = with_chart(&[], settings);
        let watches = WATCHES.replace("charts/one}", "charts/one, maxReleaseHistory: 7, storage: configmap}");
        files.watches = WatchesFile::of("watches.yaml".to_owned(), Ok(watches));
        loader.load(&files, &[], None, false).unwrap()
    };
    let options = |loaded: &Loaded| {
        let options = loaded.sources.watches[0].chart().unwrap().options.clone();
        (options.max_history, options.is_hybrid())
    };
    assert_eq!(options(&load("")), (Some(7), false));
    let changed = load("charts: {engine: hybrid, One.a.b: {maxReleaseHistory: 3}}\n");
    assert_eq!((options(&changed), changed.affected.len()), ((Some(3), true), 1));
    let wrong = load("charts:\n  One.a.b:\n    maxReleaseHistory: many\n");
    assert_eq!(options(&wrong), (Some(3), true), "the options before it go on");
    assert_eq!(wrong.errors[0].place.as_ref().unwrap().to_string(), "opdev.yaml:3:24");
    let typo = load("charts: {Oen.a.b: {maxHistory: 3}}\n");
    let said: Vec<&str> = typo.sources.diagnostics.iter().map(|one| one.message.as_str()).collect();
    assert!(said.contains(&"charts.Oen.a.b: watches.yaml has no entry of that kind"), "{said:?}");
    assert!(said.contains(&"unknown option `maxHistory` of charts.Oen.a.b has no effect"), "{said:?}");
    for key in ["overrideValues: {}", "maxConcurrentReconciles: 2", "selector: {}", "reconcilePeriod: 1m"] {
        let moved = load(&format!("charts: {{One.a.b: {{{key}}}}}\n"));
        let told = moved.sources.diagnostics.iter().find(|one| one.message.contains("entry in watches.yaml"));
        let told = told.unwrap_or_else(|| panic!("{key}: {:?}", moved.sources.diagnostics));
        let name = key.split(':').next().unwrap();
        assert_eq!(
            told.message,
            format!("`{name}` has no effect here: it belongs to the entry in watches.yaml")
        );
        assert_eq!(told.hint.as_deref(), Some("move it to the entry of One.a.b in watches.yaml"));
    }
}
