//! Parts that every size of the screen keeps. Information is what can be read and reached: the panes that are
//! in sight, their columns, their rows, the tabs of the detail pane, the keys of the footer. A pane more is
//! worth more than columns of another, and what is under way more than a key; with as many panes nothing gets
//! less where the screen gets larger.

use super::fixture::{broken, busy, events, of};
use super::frames::{screen, text};
use crate::view::ViewState;
use opdev_panes::click_targets::Shown;
use opdev_panes::layout::Shape;
use opdev_panes::pane::Pane;
use opdev_panes::text::width as cells;
use opdev_state::State;

/// The information of one screen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Information {
    shape: Shape,
    panes: usize,
    columns: usize,
    rows: usize,
    tabs: usize,
    keys: usize,
}

const PASS_COLUMNS: [&str; 5] = ["TIME", "WHY", "RESULT", "WROTE", "TOOK"];

fn information(state: &State, size: (u16, u16)) -> (Information, String) {
    let mut view = ViewState::default();
    let shown = text(&screen(state, &mut view, "", size));
    let screen = &view.screen;
    let panes = Pane::ALL.into_iter().filter(|pane| screen.shows(*pane));
    let last = shown.lines().last().unwrap_or_default();
    let under_way = ["retrying", "running"].into_iter().filter(|word| last.contains(word));
    let heading = shown.lines().find(|line| line.contains(" WHY ")).unwrap_or_default();
    let information = Information {
        shape: screen.shape,
        panes: panes.clone().count(),
        columns: screen.spots.headings.len()
            + PASS_COLUMNS.iter().filter(|name| heading.contains(**name)).count(),
        rows: panes.map(|pane| screen.heights[pane.index()]).sum(),
        tabs: screen.spots.tabs.iter().filter(|spot| matches!(spot.what, Shown::Tab(_))).count(),
        keys: screen.spots.keys.len() + 2 * under_way.count(),
    };
    (information, shown)
}

/// Texts that no size may cut.
fn check(shown: &str, size: (u16, u16)) {
    let lines: Vec<&str> = shown.lines().collect();
    let first = lines[0];
    for word in ["memca", "embedded", "ns default", "✓"] {
        assert!(size.0 < 60 || first.contains(word), "{size:?}: {word} is not in the first line\n{shown}");
    }
    let last = lines[lines.len() - 1];
    assert!(last.contains("? help"), "{size:?}: {last}");
    assert!(size.0 < 44 || last.contains(": commands"), "{size:?}: {last}");
    for line in &lines {
        assert!(cells(line) <= usize::from(size.0), "{size:?}: {line}");
        // The results and the signs are whole: what a list says of them is one of these words.
        for word in ["nothing to …", "repaire…", "update…", "create…", "status on…", "faile…"] {
            assert!(!line.contains(word), "{size:?}: {line}");
        }
    }
    if let Some(heading) = lines.iter().find(|line| line.contains(" NAME ")) {
        assert!(heading.contains("READY"), "{size:?}: {heading}");
        let beside = heading.split('│').nth(1).unwrap_or_default();
        assert!(!beside.contains('…'), "{size:?}: a heading is cut: {heading}");
    }
}

#[test]
fn a_larger_screen_never_says_less() {
    let state = busy();
    let widths: Vec<u16> = (40..=240).collect();
    let heights: Vec<u16> = (10..=60).collect();
    let grows = |before: &Option<Information>, now: &Information, size: (u16, u16), shown: &str| {
        let Some(before) = before else { return };
        assert!(now.panes >= before.panes, "{size:?} has fewer panes: {before:?} {now:?}\n{shown}");
        if now.shape != before.shape {
            return;
        }
        let all = |of: &Information| [of.columns, of.rows, of.tabs, of.keys];
        let less = all(now).into_iter().zip(all(before)).any(|(now, before)| now < before);
        assert!(!less, "{size:?} says less: {before:?} {now:?}\n{shown}");
    };
    for height in [10, 16, 24, 28, 40, 60] {
        let mut before = None;
        for width in &widths {
            let (now, shown) = information(&state, (*width, height));
            check(&shown, (*width, height));
            grows(&before, &now, (*width, height), &shown);
            before = Some(now);
        }
    }
    for width in [40, 60, 80, 96, 120, 160, 192, 240] {
        let mut before = None;
        for height in &heights {
            let (now, shown) = information(&state, (width, *height));
            check(&shown, (width, *height));
            grows(&before, &now, (width, *height), &shown);
            before = Some(now);
        }
    }
}

#[test]
fn what_comes_at_the_lower_edge_moves_no_line_above_it() {
    let calm = of(events());
    let mut all = events();
    all.push(broken());
    let broken = of(all);
    for size in [(80, 24), (100, 30), (120, 36), (160, 45), (200, 50)] {
        let before = text(&screen(&calm, &mut ViewState::default(), "j", size));
        let after = text(&screen(&broken, &mut ViewState::default(), "j", size));
        let begins = after.lines().position(|line| line.contains("✗ deployment.yaml:14:20 ─")).unwrap();
        let below = after.lines().count() - begins;
        assert!((5..=9).contains(&below), "{size:?}: {below} lines\n{after}");
        for (line, (before, after)) in before.lines().zip(after.lines()).enumerate().skip(1).take(begins - 1)
        {
            assert_eq!(before, after, "{size:?}, line {line}");
        }
        let code = after.lines().position(|line| line.contains("image: {{ .Values.image.tag }}")).unwrap();
        assert_eq!(code, begins + 1, "the faulty line comes first");
        assert!(after.lines().nth(code + 1).unwrap().contains("^ nil pointer"), "then the caret");
        assert!(after.contains("Give image a tag in values.yaml."), "the fix is whole\n{after}");
        assert!(!after.contains("…\n"), "{after}");
    }
}

#[test]
fn a_new_row_moves_no_column_and_no_border() {
    let few = of(events());
    let mut all = events();
    let rest = serde_json::json!({"spec": {"replicaCount": 1}});
    let long = "a-name-that-is-much-longer-than-those-that-were-there-before";
    all.push(super::fixture::seen(super::fixture::object("Memcached", long, None, "17:00:00", &rest)));
    let more = of(all);
    for size in [(40, 10), (80, 24), (100, 30), (120, 36), (160, 45), (200, 50)] {
        let heading = |state: &State| {
            let shown = text(&screen(state, &mut ViewState::default(), "", size));
            let line = shown.lines().find(|line| line.contains(" NAME ")).unwrap_or_default();
            let line = line.split('│').nth(1).unwrap_or_default().to_owned();
            (line, shown.lines().filter(|line| line.contains('├')).count())
        };
        assert_eq!(heading(&few), heading(&more), "{size:?}");
    }
}
