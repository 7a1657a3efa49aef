//! Golden frames: a state, keys, and the screen that must come of them, styles included.
//! `UPDATE_GOLDEN=1 cargo test` writes them anew.

use super::fixture::{
    broken, busy, events, finished, held_type, in_theme, logged, now, of, sources, started, trust_asked,
    type_changed,
};
use super::held::shadow_run;
use crate::view::ViewState;
use crate::{Input, draw, update};
use expect_test::expect;
use opdev_event::{
    Diagnostic, Event, KindHealth, Level, Place, ReloadFailed, RequestOutcome, Severity, SourcesChanged,
};
use opdev_panes::keys::chord::Key;
use opdev_state::State;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Modifier, Style};
use std::fmt::Write as _;
use std::path::Path;

/// The screen after some keys; names are separated by spaces.
pub(crate) fn screen(state: &State, view: &mut ViewState, keys: &str, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(state, view, frame, now())).unwrap();
    for name in keys.split_whitespace() {
        let key = Key::parse(name).unwrap_or_else(|| panic!("{name} is no key"));
        update(view, Input::Key(key), state);
        // The effect of keys depends on what was drawn: the height of a page.
        terminal.draw(|frame| draw(state, view, frame, now())).unwrap();
    }
    terminal.backend().buffer().clone()
}

/// The text of a screen.
pub(crate) fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for row in buffer.content().chunks(buffer.area.width as usize) {
        let mut skip = 0;
        for cell in row {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            out.push_str(cell.symbol());
            skip = opdev_panes::text::width(cell.symbol()).saturating_sub(1);
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

fn style_name(style: Style) -> String {
    let mut parts = Vec::new();
    if let Some(color) = style.fg.filter(|color| *color != ratatui::style::Color::Reset) {
        parts.push(color.to_string().to_lowercase());
    }
    if let Some(color) = style.bg.filter(|color| *color != ratatui::style::Color::Reset) {
        parts.push(format!("on {}", color.to_string().to_lowercase()));
    }
    for (modifier, name) in
        [(Modifier::BOLD, "bold"), (Modifier::DIM, "dim"), (Modifier::REVERSED, "reversed")]
    {
        if style.add_modifier.contains(modifier) {
            parts.push(name.to_owned());
        }
    }
    parts.join(" ")
}

/// For each row, its styled runs: `3: 0-12 bold, 40-52 green`.
fn styles(buffer: &Buffer) -> String {
    let mut out = String::new();
    for (y, row) in buffer.content().chunks(buffer.area.width as usize).enumerate() {
        let mut runs: Vec<(usize, usize, String)> = Vec::new();
        for (x, cell) in row.iter().enumerate() {
            let name = style_name(cell.style());
            match runs.last_mut() {
                Some((_, end, known)) if *known == name => *end = x,
                _ => runs.push((x, x, name)),
            }
        }
        let runs = runs.iter().filter(|(_, _, name)| !name.is_empty());
        let runs = runs.map(|(start, end, name)| format!("{start}-{end} {name}")).collect::<Vec<_>>();
        if !runs.is_empty() {
            writeln!(out, "{y}: {}", runs.join(", ")).unwrap();
        }
    }
    out
}

fn golden(name: &str, buffer: &Buffer) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/golden/frames/{name}.txt"));
    let got = format!("{}-- styles\n{}", text(buffer), styles(buffer));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &got).unwrap();
        return;
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        got == wanted,
        "{name} differs from {}; UPDATE_GOLDEN=1 writes it anew. It is now:\n{got}",
        path.display()
    );
}

pub(crate) fn check(name: &str, state: &State, keys: &str, size: (u16, u16)) {
    golden(name, &screen(state, &mut ViewState::default(), keys, size));
}

/// Checks a frame of a view that has been somewhere already.
pub(crate) fn check_view(name: &str, state: &State, view: &mut ViewState, keys: &str, size: (u16, u16)) {
    golden(name, &screen(state, view, keys, size));
}

const HOME: (u16, u16) = (120, 36);

#[test]
fn the_screen_at_all_sizes() {
    let state = busy();
    for (width, height) in [(120, 36), (80, 24), (200, 60), (40, 10), (20, 5)] {
        check(&format!("busy-{width}x{height}"), &state, "j", (width, height));
    }
}

#[test]
fn the_screen_in_both_themes_at_every_size() {
    let state = busy();
    for theme in ["dark", "light"] {
        for (width, height) in [(80, 24), (100, 30), (120, 36), (160, 45), (200, 50)] {
            let mut view = in_theme(opdev_panes::theme::Theme::named(theme).unwrap());
            golden(
                &format!("screen-{theme}-{width}x{height}"),
                &screen(&state, &mut view, "j", (width, height)),
            );
            check(&format!("all-{width}x{height}"), &state, "j 3 o", (width, height));
        }
    }
}

#[test]
fn every_reconcile_of_all_objects_names_its_object_at_every_width() {
    let state = busy();
    for width in 40..=220 {
        let shown = text(&screen(&state, &mut ViewState::default(), "j 3 o", (width, 40)));
        assert!(shown.contains("OBJECT"), "{width}\n{shown}");
        let rows = shown.lines().filter(|line| line.contains("upgraded") || line.contains("repaired"));
        for row in rows.filter(|row| row.contains("edit") || row.contains("Depl")) {
            assert!(row.contains("sample") || row.contains("…mple"), "{width}: {row}");
        }
    }
}

#[test]
fn kinds_are_not_cut_beside_empty_columns() {
    // Where there is less room, the names and what is said of them need it more.
    for width in 106..=220 {
        let shown = text(&screen(&busy(), &mut ViewState::default(), "", (width, 40)));
        assert!(shown.contains("MemcachedBackup nightly"), "{width}\n{shown}");
    }
}

#[test]
fn what_fails_and_is_no_custom_resource_stands_in_the_header_and_in_the_list() {
    use super::fixture::{now, reconcile, reference};
    use opdev_event::{Failure, Outcome, UnrelatedObject, UnrelatedSeen};
    use opdev_object::meta::ObjectRef;
    let failed = |id: u64, kind: &str, fails: bool| {
        let failure = Failure { chain: vec!["no answer".to_owned()], diagnostic: None, attempt: 3 };
        let mut one = reconcile(id, "a", "17:03:00", vec![], Outcome::Failed, 1);
        one.object = reference(kind, "a");
        one.failure = fails.then_some(failure);
        Event::Reconciled(one.into())
    };
    let first = |more: Vec<Event>| {
        let state = of(events().into_iter().chain(more).collect());
        let shown = text(&screen(&state, &mut ViewState::default(), "", HOME));
        shown.lines().next().unwrap_or_default().to_owned()
    };
    expect![" opdev · memcached-operator · embedded 1.36 · ns default · ✗ Pod a fails     ✓ deployment.yaml live in 38 ms"]
    .assert_eq(&first(vec![failed(90, "Pod", true)]));
    let two = first(vec![failed(90, "Pod", true), failed(91, "Node", true)]);
    expect![" opdev · memcached-operator · embedded 1.36 · ns default · ✗ 2 objects fail  ✓ deployment.yaml live in 38 ms"]
    .assert_eq(&two);
    let after = first(vec![failed(90, "Pod", true), failed(91, "Pod", false)]);
    assert!(!after.contains("fail"), "{after}");
    let custom = first(vec![failed(90, "Memcached", true)]);
    assert!(!custom.contains("fails"), "it has a row: {custom}");
    let unrelated = || {
        let ObjectRef { gvk, namespace, name, uid } = reference("Pod", "a");
        let pod = UnrelatedObject { namespace, name, uid, changed_by: None };
        Event::UnrelatedSeen(UnrelatedSeen { at: now(), gvk, objects: vec![pod] })
    };
    let listed = |more: Vec<Event>| {
        let state = of(events().into_iter().chain(more).collect());
        text(&screen(&state, &mut ViewState::default(), "", HOME)).contains("Pod a ")
    };
    assert!(!listed(vec![unrelated()]));
    assert!(listed(vec![unrelated(), failed(90, "Pod", true), unrelated()]));
    assert!(listed(vec![failed(90, "Pod", true), unrelated()]), "it is seen later than it failed");
    assert!(!listed(vec![unrelated(), failed(90, "Pod", true), failed(91, "Pod", false)]));
}

#[test]
fn a_save_is_live_held_refused_or_discarded_and_nothing_is_green_beside_trouble() {
    use opdev_event::{Released, ShadowDecision, Verdict};
    let first = |more: Vec<Event>| {
        let state = of(events().into_iter().chain(more).collect());
        let buffer = screen(&state, &mut ViewState::default(), "", HOME);
        let green = styles(&buffer).lines().next().unwrap_or_default().contains("green");
        (text(&buffer).lines().next().unwrap_or_default().to_owned(), green)
    };
    let (line, green) = first(vec![]);
    assert!(green, "{line}");
    expect![" opdev · memcached-operator · embedded 1.36 · ns default                     ✓ deployment.yaml live in 38 ms"]
    .assert_eq(&line);
    let (line, green) = first(vec![held_type()]);
    assert!(!green, "{line}");
    expect![" opdev · memcached-operator · embedded 1.36 · ns default          ? memcached_types.go needs your answer (H)"]
    .assert_eq(&line);
    let released = |verdict| {
        let id = "memcacheds.cache.my.domain@8".to_owned();
        Event::Released(Released { at: now(), id, verdict })
    };
    let (line, green) = first(vec![held_type(), released(Verdict::Discarded)]);
    assert!(!green, "{line}");
    expect![" opdev · memcached-operator · embedded 1.36 · ns default       ⚠ memcached_types.go: the old version is kept"]
    .assert_eq(&line);
    for more in [
        vec![held_type(), released(Verdict::Undone)],
        vec![
            held_type(),
            released(Verdict::Discarded),
            sources(8, &["config/types/v1alpha1/memcached_types.go"]),
        ],
    ] {
        assert!(!first(more).0.contains("old version"));
    }
    let Event::ShadowRun(run) = shadow_run().remove(0) else { panic!("no shadow run") };
    let mut run = opdev_event::ShadowRun::clone(&run);
    run.decision = ShadowDecision::Refused;
    let files = run.files.clone();
    run.objects[0].problem = Some(problem("boom"));
    let run = Event::ShadowRun(run.into());
    let (line, green) = first(vec![run.clone()]);
    assert!(!green, "{line}");
    expect![" opdev · memcached-operator · embedded 1.36 · ns default                              ✗ memcached.ts refused"]
    .assert_eq(&line);
    // As opdev tells it: the set that serves comes after the trial, then what keeps the newest files out.
    let failed = |message: &str| {
        let diagnostics = vec![problem(message)];
        Event::ReloadFailed(ReloadFailed {
            at: now(),
            files: files.clone(),
            diagnostics,
            build: false,
            program: String::new(),
        })
    };
    let served = sources(8, &["config/reconcilers/memcached.ts"]);
    for (message, word) in [
        ("boom (on Memcached default/a)", "✗ memcached.ts refused"),
        ("the API server would refuse memcacheds.cache.my.domain: x", "✗ memcached.ts refused"),
        ("unexpected token", "✗ memcached.ts:3:1"),
    ] {
        let (line, green) = first(vec![run.clone(), served.clone(), failed(message)]);
        assert!(line.contains(word) && !green, "{message}: {line}");
    }
}

fn problem(message: &str) -> Diagnostic {
    let place = Place { file: "config/reconcilers/memcached.ts".to_owned(), line: 3, column: 1 };
    Diagnostic {
        severity: Severity::Error,
        message: message.to_owned(),
        place: Some(place),
        excerpt: None,
        hint: None,
        kind: None,
    }
}

#[test]
fn a_removed_file_is_not_called_saved_and_the_header_says_what_nothing_reconciles_any_more() {
    let Event::SourcesChanged(set) = sources(8, &["config/reconcilers/memcached.ts"]) else {
        panic!("no sources")
    };
    let mut set = SourcesChanged::clone(&set);
    set.removed = true;
    set.affected = Vec::new();
    let line = |set: SourcesChanged| {
        let state = of(events().into_iter().chain([Event::SourcesChanged(set.into())]).collect());
        text(&screen(&state, &mut ViewState::default(), "", HOME))
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let same = line(set.clone());
    expect![" opdev · memcached-operator · embedded 1.36 · ns default                        ✓ memcached.ts removed, live"]
    .assert_eq(&same);
    set.kinds[0].health = KindHealth::Shown { why: "it has no reconciler".to_owned() };
    let lost = line(set);
    expect![" memcached-operator · embedded 1.36 · ns default        ⚠ memcached.ts removed, nothing reconciles Memcached"]
    .assert_eq(&lost);
}

#[test]
fn the_header_names_cluster_namespace_identity_and_save_at_any_width() {
    let mut all = events();
    if let Some(Event::Started(started)) = all.first_mut() {
        std::sync::Arc::make_mut(started).identity = Some("web-manager".to_owned());
    }
    let state = of(all);
    for width in 60..=200 {
        let shown = text(&screen(&state, &mut ViewState::default(), "", (width, 40)));
        let line = shown.lines().next().unwrap_or_default();
        for part in ["memca", "embedded", "ns default", "as we", "nager", "✓"] {
            assert!(line.contains(part), "{width}: {part} in {line}");
        }
    }
}

#[test]
fn the_first_start_explains_itself() {
    check("starting-120x36", &State::default(), "", HOME);
    check("empty-120x36", &of(vec![started(), sources(1, &[])]), "", HOME);
    check("empty-80x24", &of(vec![started(), sources(1, &[])]), "", (80, 24));
    check("reading-80x24", &of(vec![started()]), "", (80, 24));
    let mut none = sources(1, &[]);
    if let Event::SourcesChanged(sources) = &mut none {
        std::sync::Arc::make_mut(sources).kinds.clear();
    }
    check("no-kinds-80x24", &of(vec![started(), none]), "", (80, 24));
}

#[test]
fn dialogs() {
    let state = busy();
    for (name, keys) in
        [("help", "?"), ("apply", "a"), ("scale", "j s"), ("delete", "j D"), ("delete-orphan", "j D j j tab")]
    {
        check(&format!("{name}-120x36"), &state, keys, HOME);
        check(&format!("{name}-80x24"), &state, keys, (80, 24));
        check(&format!("{name}-40x10"), &state, keys, (40, 10));
    }
    check("filter-120x36", &state, "/ n i g h", HOME);
}

#[test]
fn every_tab_of_the_detail_pane() {
    let state = busy();
    for (name, keys) in [
        ("failure", "4"),
        ("status", "j 4"),
        ("objects", "j ]"),
        ("calls", "j ] ]"),
        ("log", "j L o"),
        ("yaml", "j y"),
        ("events", "4 ["),
    ] {
        check(&format!("detail-{name}-120x36"), &state, keys, HOME);
    }
    check("detail-failure-80x24", &state, "4 w", (80, 24));
    check("zoom-120x36", &state, "j 3 o z", HOME);
    check("owned-yaml-120x36", &state, "j 2 j enter", HOME);
}

#[test]
fn broken_files_and_messages() {
    let mut all = events();
    all.push(broken());
    check("broken-120x36", &of(all.clone()), "", HOME);
    check("broken-80x24", &of(all), "", (80, 24));
    let done = |outcome| {
        let mut all = events();
        all.push(finished(1, "apply samples/cache_v1alpha1_memcached.yaml", outcome));
        of(all)
    };
    let good =
        RequestOutcome::Done { summary: "applied Memcached memcached-sample".to_owned(), warnings: vec![] };
    check("done-120x36", &done(good), "", HOME);
    let bad = RequestOutcome::Failed {
        message: "Memcached.cache.my.domain \"memcached-sample\" is invalid: spec.replicaCount: Invalid value: -1: should be greater than or equal to 0".to_owned(),
        hint: Some("mend the file and apply it again".to_owned()),
    };
    check("refused-120x36", &done(bad.clone()), "", HOME);
    check("refused-40x10", &done(bad), "", (40, 10));
}

#[test]
fn held_changes_and_what_saves_change() {
    let with = |more: Vec<Event>| of(events().into_iter().chain(more).collect());
    let held = with(vec![held_type()]);
    for (width, height) in [HOME, (80, 24), (40, 10)] {
        check(&format!("held-type-{width}x{height}"), &held, "H j", (width, height));
    }
    check("held-type-apply-120x36", &held, "H tab", HOME);
    let asked = with(vec![trust_asked()]);
    check("trust-news-120x36", &asked, "", HOME);
    for (width, height) in [(120, 36), (80, 24), (40, 12)] {
        check(&format!("trust-{width}x{height}"), &asked, "H tab", (width, height));
    }
    check("held-reconciler-120x36", &with(shadow_run()), "", HOME);
    check("impact-shadow-120x36", &with(shadow_run()), "esc j i", HOME);
    let mut all = type_changed();
    check("impact-type-120x36", &with(all.clone()), "j i", HOME);
    all.push(super::fixture::settled(8, 55));
    check("impact-settled-80x24", &with(all), "j i", (80, 24));
}

#[test]
fn without_colours_nothing_is_coloured() {
    let mut view = in_theme(opdev_panes::theme::Theme::plain());
    let buffer = screen(&busy(), &mut view, "", HOME);
    let styles = styles(&buffer);
    for colour in ["red", "green", "yellow", "cyan", "on "] {
        assert!(!styles.contains(colour), "{colour} in:\n{styles}");
    }
}

fn many(count: usize) -> State {
    let mut state = of(vec![started(), sources(1, &[])]);
    for i in 0..count {
        let rest = serde_json::json!({"spec": {"replicaCount": 1}});
        let name = format!("m-{i:05}");
        state.reduce(super::fixture::seen(super::fixture::object(
            "Memcached",
            &name,
            None,
            "17:00:00",
            &rest,
        )));
    }
    state
}

#[test]
fn a_frame_of_ten_thousand_resources_looks_at_few_of_them() {
    let mut state = many(10_000);
    let mut view = ViewState::default();
    let shown = text(&screen(&state, &mut view, "G", HOME));
    assert!(shown.contains("m-09999") && !shown.contains("m-00000"), "{shown}");
    let made = view.resources.table.rows_made();
    // Those on the screen, and as many ahead as each refresh makes.
    assert!((1..=3_000).contains(&made), "{made} rows were made of 10,000 for a few frames");
    let mut rest = 0;
    while view.resources.table.rows_made() < 10_000 && rest < 30 {
        screen(&state, &mut view, "", HOME);
        rest += 1;
    }
    let changed = serde_json::json!({"spec": {"replicaCount": 2}});
    let object = super::fixture::object("Memcached", "m-04000", None, "17:00:00", &changed);
    state.reduce(super::fixture::seen(object));
    let before = view.resources.table.rows_made();
    screen(&state, &mut view, "", HOME);
    let anew = view.resources.table.rows_made() - before;
    assert!(anew <= 1, "one change makes {anew} rows anew");
}

#[test]
fn ages_wake_the_screen_when_they_read_differently() {
    let mut view = ViewState::default();
    screen(&busy(), &mut view, "", (160, 45));
    assert_eq!(view.screen.wake, Some(std::time::Duration::from_secs(1)));
    let mut view = ViewState::default();
    screen(&of(vec![started(), sources(1, &[])]), &mut view, "", HOME);
    assert_eq!(view.screen.wake, None, "an idle screen sleeps");
    let mut all = events();
    all.push(logged(Level::Info, "x", None));
    all.push(Event::LogDropped { lines: 12 });
    let shown = text(&screen(&of(all), &mut ViewState::default(), "L o", HOME));
    assert!(shown.contains("12 lines came too fast"), "{shown}");
}
