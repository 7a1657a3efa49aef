//! Sets of sources, one after the other.

use super::*;
use crate::definitions::Types;
use crate::reconcilers::Texts;
use expect_test::expect;

const WATCHES: &str = "- {group: a.b, version: v1, kind: One, chart: charts/one}\n\
                       - {group: a.b, version: v1, kind: Two, chart: charts/two}\n";

fn chart(name: &str, template: &str) -> io::Result<FileSet> {
    let metadata = format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n");
    let files = [
        ("Chart.yaml", metadata),
        ("values.yaml", "n: 1\n".to_owned()),
        ("templates/a.yaml", template.to_owned()),
    ];
    Ok(files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect())
}

const GOOD: &str = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata: {n: \"{{ .Values.n }}\"}\n";

fn files(one: &str, two: &str) -> Files {
    Files {
        watches: WatchesFile::of("watches.yaml".to_owned(), Ok(WATCHES.to_owned())),
        settings: None,
        charts: [("charts/one".to_owned(), chart("one", one)), ("charts/two".to_owned(), chart("two", two))]
            .into(),
        crds: Vec::new(),
        patched: BTreeMap::new(),
        named_charts: BTreeMap::new(),
        types: Types::default(),
        reconcilers: Texts::new(),
        options: Arc::default(),
        samples: vec![(
            "samples/one.yaml".to_owned(),
            "apiVersion: a.b/v1\nkind: One\nmetadata: {name: x}\n".to_owned(),
        )],
        env: BTreeMap::new(),
    }
}

fn kinds(loaded: &Loaded) -> Vec<&str> {
    loaded.affected.iter().map(|gvk| gvk.kind.as_str()).collect()
}

#[test]
fn only_the_changed_kind_is_affected() {
    let mut loader = Loader::default();
    let first = loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
    assert_eq!((first.sources.number, kinds(&first)), (1, vec!["One", "Two"]));
    assert_eq!(first.sources.definitions.len(), 2, "kinds without a CRD get the scaffolded one");
    assert_eq!(first.sources.samples[0].object.name, "x");
    assert!(loader.load(&files(GOOD, GOOD), &[], None, false).is_none(), "the same bytes are no change");

    let edited = GOOD.replace("name: a", "name: b");
    let second =
        loader.load(&files(&edited, GOOD), &["charts/one/templates/a.yaml".to_owned()], None, false).unwrap();
    assert_eq!((second.sources.number, kinds(&second)), (2, vec!["One"]));
    assert_eq!(second.sources.watches.iter().map(|watch| watch.changed_in).collect::<Vec<_>>(), [2, 1]);
    let forced = loader.load(&files(&edited, GOOD), &[], None, true).unwrap();
    assert_eq!(kinds(&forced), ["One", "Two"]);
}

#[test]
fn a_broken_edit_keeps_the_last_good_chart_and_has_a_place() {
    let mut loader = Loader::default();
    let first = loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
    for (broken, line, words) in [
        (GOOD.replace("}}", ""), 4, "unclosed action"),
        (GOOD.replace(".Values.n ", ".Values.n.m.o "), 4, "nil pointer evaluating"),
    ] {
        let loaded = loader.load(&files(&broken, GOOD), &[], None, false).unwrap();
        assert!(kinds(&loaded).is_empty(), "{words}");
        assert!(Arc::ptr_eq(
            loaded.sources.watches[0].chart().unwrap().chart.as_ref().unwrap(),
            first.sources.watches[0].chart().unwrap().chart.as_ref().unwrap()
        ));
        let problem = &loaded.errors[0];
        assert_eq!(
            problem.place.as_ref().map(|at| (at.file.as_str(), at.line)),
            Some(("charts/one/templates/a.yaml", line)),
            "{problem:?}"
        );
        assert!(matches!(loaded.kinds[0].health, KindHealth::Stale { .. }));
        assert!(problem.excerpt.as_deref().is_some_and(|text| text.contains(".Values.n")), "{problem:?}");
    }
    let mended = loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
    assert_eq!(mended.kinds[0].health, KindHealth::Serving);
    assert!(mended.errors.is_empty());
}

#[test]
fn a_chart_that_is_missing_at_start_disables_one_kind() {
    let mut loader = Loader::default();
    let mut files = files(GOOD, GOOD);
    files.charts.insert("charts/one".to_owned(), Err(io::Error::other("No such file or directory")));
    let loaded = loader.load(&files, &[], None, false).unwrap();
    assert!(matches!(loaded.kinds[0].health, KindHealth::Disabled { .. }));
    assert_eq!(loaded.kinds[1].health, KindHealth::Serving);
    assert_eq!(loaded.errors[0].place.as_ref().unwrap().to_string(), "watches.yaml:1:47");
}

#[test]
fn a_watches_file_that_does_not_parse_changes_no_kind() {
    let mut loader = Loader::default();
    loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
    let mut files = files(GOOD, GOOD);
    files.watches = WatchesFile::of("watches.yaml".to_owned(), Ok("- [".to_owned()));
    let loaded = loader.load(&files, &[], None, false).unwrap();
    assert_eq!(loaded.sources.watches.len(), 2);
    assert!(kinds(&loaded).is_empty());
    assert_eq!(loaded.errors.len(), 1);
}

#[test]
fn a_template_that_gives_no_yaml_is_named_where_it_lies() {
    let mut loader = Loader::default();
    loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
    let loaded = loader.load(&files(&GOOD.replace("data:", "data: [x"), GOOD), &[], None, false).unwrap();
    let place = loaded.errors[0].place.clone().unwrap();
    assert_eq!(place.file, "charts/one/templates/a.yaml");
    assert!(loaded.errors[0].excerpt.is_some());
}

#[test]
fn a_chart_that_does_not_fit_gives_way_to_the_one_before_it_until_it_is_edited() {
    let mut loader = Loader::default();
    let one = Gvk::new("a.b", "v1", "One");
    let refused = problem("charts/one/templates/a.yaml", "refused".to_owned());
    let chart = |loaded: &Loaded| loaded.sources.watches[0].chart().unwrap().chart.clone().unwrap();
    let first = loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
    assert!(loader.go_back(&one, 1, &refused).is_none(), "nothing came before it");
    let unfit = files(&GOOD.replace("name: a", "name: b"), GOOD);
    loader.load(&unfit, &[], None, false).unwrap();
    assert!(loader.go_back(&one, 1, &refused).is_none(), "a newer one serves");
    let back = loader.go_back(&one, 2, &refused).unwrap();
    assert_eq!((back.sources.number, kinds(&back)), (3, vec!["One"]));
    assert!(Arc::ptr_eq(&chart(&back), &chart(&first)));
    assert!(matches!(&back.kinds[0].health, KindHealth::Stale { problem } if problem.message == "refused"));
    assert!(loader.go_back(&one, 3, &refused).is_none(), "there is none before that");

    // Another chart is saved meanwhile.
    let other = files(&GOOD.replace("name: a", "name: b"), &GOOD.replace("name: a", "name: c"));
    let fourth = loader.load(&other, &[], None, false).unwrap();
    assert_eq!(kinds(&fourth), ["Two"]);
    assert!(Arc::ptr_eq(&chart(&fourth), &chart(&first)));
    assert_eq!(fourth.errors.len(), 1);
    let forced = loader.load(&other, &[], None, true).unwrap();
    assert!(!Arc::ptr_eq(&chart(&forced), &chart(&first)), "it is tried again where the user asks for it");
    assert!(loader.go_back(&one, forced.sources.number, &refused).is_some());
    let mended = loader.load(&files(&GOOD.replace("name: a", "name: d"), GOOD), &[], None, false).unwrap();
    assert_eq!(mended.kinds[0].health, KindHealth::Serving);
    // Its type changes: what is refused now was not refused for the chart.
    let renewed = loader.renew(std::slice::from_ref(&one)).unwrap();
    assert!(loader.go_back(&one, renewed.sources.number, &refused).is_none());
}

#[test]
fn a_library_chart_and_an_outdated_dependency_are_told_at_their_places() {
    let mut loader = Loader::default();
    let mut read = files(GOOD, GOOD);
    let list = "apiVersion: v2\nname: one\nversion: 0.1.0\ntype: library\ndependencies:\n\
                - {name: far, version: 1.0.0, repository: \"https://example.com\"}\n\
                - {name: s, version: 0.1.0, repository: \"file://../s\"}\n";
    let one = read.charts.get_mut("charts/one").unwrap().as_mut().unwrap();
    one.insert("Chart.yaml", list.as_bytes().to_vec());
    for name in ["s", "far"] {
        let text = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
        one.insert(format!("charts/{name}/Chart.yaml"), text.into_bytes());
    }
    let outdated = Outdated {
        chart: "charts/one".to_owned(),
        name: "s".to_owned(),
        packed: "charts/s".to_owned(),
        source: "charts/s".to_owned(),
        file: "values.yaml".to_owned(),
    };
    read.options = Arc::new(Options { outdated: vec![outdated], ..Options::default() });
    let told = loader.load(&read, &[], None, false).unwrap().sources.diagnostics.clone();
    let [old, library] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(old.place.as_ref().unwrap().to_string(), "charts/one/Chart.yaml:7:3");
    expect!["charts/one/charts/s is not what charts/s is now: values.yaml differs, and the chart uses the packed one"]
    .assert_eq(&old.message);
    expect!["the chart of One is a library: its releases have no objects"].assert_eq(&library.message);
    assert_eq!(library.place.as_ref().unwrap().to_string(), "watches.yaml:1:47");
    assert!(told.iter().all(|one| one.severity == Severity::Warning && one.hint.is_some()));
}
