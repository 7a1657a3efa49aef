//! The list of the reconciles, newest first: its visible window, with the columns that this width has room
//! for. Widths follow the pane, so a new row moves no column. An empty list says what will fill it.

use super::super::view::ViewState;
use super::found;
use super::lists::{mark, put, words_of};
use super::pieces::below;
use opdev_event::{FindingSeverity, Outcome, Reconcile, ReconcileStarted, RuleFinding, words};
use opdev_panes::detail::parts::clock;
use opdev_panes::finding_sign;
use opdev_panes::folds::{ReconcileRow, only_retries};
use opdev_panes::lists::reconcile_columns::{RESULT, ReconcileCells, ReconcileColumns};
use opdev_panes::pane::Pane;
use opdev_panes::text::{Row, clean, cut_words};
use opdev_panes::theme::Role;
use opdev_panes::waterfall::{self, Line};
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;

/// Draws it; the reconciles under way stand on top.
pub(super) fn draw(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect) {
    let root = view.root(state).map(|root| Arc::clone(&root.key));
    let all = view.all || root.is_none();
    let running: Vec<Arc<ReconcileStarted>> = match &root {
        Some(root) if !all => state.running.get(root.as_ref()).into_iter().cloned().collect(),
        _ => state.running.values().take(3).cloned().collect(),
    };
    if view.reconciles.list.is_empty() && running.is_empty() {
        let rows = words_of(&[empty(view, state).to_owned()], area);
        put(&rows, view, buffer, area);
        return found::draw_card(state, view, buffer, below(area, rows.len()));
    }
    let cells = area.width as usize;
    let top = 1 + running.len().min((area.height as usize).saturating_sub(2)) as u16;
    let height = (area.height.saturating_sub(top) as usize).max(1);
    view.screen.heights[Pane::Reconciles.index()] = height;
    let window = view.reconciles.selection.window(view.reconciles.rows.len(), height);
    let columns =
        ReconcileColumns::of(all, (state.kinds().len() > 1, view.resources.namespaces_differ), cells);
    let heading = columns.row(&ReconcileCells {
        time: "TIME".to_owned(),
        object: "OBJECT".to_owned(),
        why: "WHY".to_owned(),
        result: "RESULT".to_owned(),
        wrote: "WROTE".to_owned(),
        took: "TOOK".to_owned(),
    });
    put(&[Row::new(Role::Dim, format!("    {}", heading.concat()))], view, buffer, area);
    let mut y = area.y + 1;
    for reconcile in running.iter().take((area.height as usize).saturating_sub(2)) {
        let text = columns.row(&ReconcileCells {
            time: clock(reconcile.at, &view.look.zone),
            object: columns.called(&reconcile.object),
            why: columns.why(&words::causes_of(&reconcile.object, &reconcile.causes), 1),
            result: "running".to_owned(),
            ..ReconcileCells::default()
        });
        let row = Row::new(Role::Busy, format!("  ↻ {}", text.concat()));
        row.draw(buffer, view.look.theme, (area.x, y), cells, false);
        y += 1;
    }
    for i in window {
        if y >= area.bottom() {
            break;
        }
        let row = &view.reconciles.rows[i];
        let selected = i == view.reconciles.selection.index;
        let focused = selected && view.focus == Pane::Reconciles;
        let reconcile = &view.reconciles.list[row.reconcile];
        let row = match row.line {
            Some(Line::Storm) => storm_row(state, reconcile, cells, selected),
            Some(line) => {
                let mut drawn = Row::new(Role::Text, mark(selected));
                drawn.0.extend(waterfall::row(line, reconcile, &view.look.zone, cells.saturating_sub(1)).0);
                drawn
            }
            None => reconcile_row((state, view), row, reconcile, &columns, selected),
        };
        row.draw(buffer, view.look.theme, (area.x, y), cells, focused);
        y += 1;
    }
    let forgotten = state.history.forgotten();
    if forgotten > 0 && y < area.bottom() {
        let text = format!("    {forgotten} older ones of all objects are forgotten; :memory says why");
        Row::new(Role::Dim, text).draw(buffer, view.look.theme, (area.x, y), cells, false);
        y += 1;
    }
    found::draw_card(state, view, buffer, below(area, usize::from(y - area.y)));
}

fn empty(view: &ViewState, state: &State) -> &'static str {
    if !view.filter(Pane::Reconciles).is_empty() {
        "No reconcile passes the filter. esc clears it."
    } else if state.history.forgotten() > 0 {
        "No reconcile is kept. Older ones are forgotten; :memory says why."
    } else {
        "No reconcile yet. Each one shows here with its reason: a created or changed custom resource, a changed \
         child, a saved file, a resync, a key of yours."
    }
}

fn reconcile_row(
    (state, view): (&State, &ViewState),
    row: &ReconcileRow,
    reconcile: &Reconcile,
    columns: &ReconcileColumns,
    selected: bool,
) -> Row {
    let open = view.reconciles.open.contains(&reconcile.id);
    let (mut symbol, mut role) = sign(reconcile);
    let mut came_to = words::came_to(reconcile);
    let found = state.findings.shown_by(reconcile).filter(|found| found.severity != FindingSeverity::Hint);
    if let Some(found) = found {
        (symbol, role) = (finding_sign::sign(found), finding_sign::role(found));
        if found.storm {
            came_to = found.within(RESULT);
        }
    }
    // A filter shows a part of the storm.
    let whole = view.filter(Pane::Reconciles).is_empty();
    let storm = state.findings.storm_of(reconcile).filter(|_| whole);
    let times = storm.map_or(row.times, |found| storm_times(found, row.times));
    let [time, object, why, result, wrote, took] = columns.row(&ReconcileCells {
        time: clock(reconcile.at, &view.look.zone),
        object: columns.called(&reconcile.object),
        why: columns.why(&why(reconcile), times),
        result: came_to,
        wrote: wrote(reconcile),
        took: words::took(reconcile.took).replace(' ', ""),
    });
    Row::new(Role::Text, format!("{}{}", mark(selected), if open { "▾" } else { " " }))
        .and(role, format!("{symbol} "))
        .and(Role::Text, format!("{time}{object}{why}"))
        .and(role, result)
        .and(Role::Text, format!("{wrote}{took}"))
}

/// The number of reconciles that a folded storm stands for: older ones may be forgotten.
fn storm_times(found: &RuleFinding, times: usize) -> usize {
    if times > 1 { times.max(usize::try_from(found.times).unwrap_or(times)) } else { times }
}

/// The line below a folded storm: what repeats.
fn storm_row(state: &State, reconcile: &Reconcile, cells: usize, selected: bool) -> Row {
    let why = state.findings.storm_of(reconcile).map(|found| words::one_line(&found.why)).unwrap_or_default();
    let room = cells.saturating_sub(7);
    Row::new(Role::Text, mark(selected)).and(Role::Dim, format!("   └ {}", cut_words(&clean(&why), room)))
}

/// The causes; of a failed reconcile the error, too.
fn why(reconcile: &Reconcile) -> String {
    let causes = match only_retries(reconcile) && reconcile.failure.is_some() {
        // The error of the reconcile before stands behind it already.
        true => "retry".to_owned(),
        false => words::causes_of_reconcile(reconcile),
    };
    let error = reconcile.failure.as_ref().and_then(|failure| {
        let place = failure.diagnostic.as_ref().map(|problem| {
            let place = problem.place.as_ref().map(|place| words::file_name(&place.to_string()).to_owned());
            format!("{} {}", place.unwrap_or_default(), words::one_line(&problem.message)).trim().to_owned()
        });
        place.or_else(|| failure.chain.last().map(|text| words::one_line(text)))
    });
    if let (Outcome::Waiting, Some(words)) = (reconcile.outcome, &reconcile.waiting) {
        return format!("{causes}: {}", words::one_line(words));
    }
    match error {
        Some(error) if reconcile.outcome == Outcome::Failed => format!("{causes}: {error}"),
        _ => causes,
    }
}

/// The kinds to which something was written.
fn wrote(reconcile: &Reconcile) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for change in &reconcile.objects {
        let kind = change.object.gvk.kind.as_str();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let status = (!reconcile.status.is_empty()).then_some("status");
    match (kinds.as_slice(), status) {
        ([], None) => String::new(),
        ([], Some(status)) => status.to_owned(),
        ([one], None) => (*one).to_owned(),
        ([one], Some(status)) => format!("{one}, {status}"),
        ([first, rest @ ..], status) => {
            format!("{first}, +{}", rest.len() + usize::from(status.is_some()))
        }
    }
}

/// The sign of a reconcile by its result. What was noted in it is no sign of a fault: a cache that is a
/// moment behind is ordinary, and what is wrong is told by findings.
fn sign(reconcile: &Reconcile) -> (&'static str, Role) {
    match reconcile.outcome {
        Outcome::Failed => ("✗", Role::Bad),
        Outcome::Installed | Outcome::Upgraded | Outcome::Applied | Outcome::Repaired => ("●", Role::Good),
        Outcome::Uninstalled => ("✓", Role::Good),
        Outcome::Waiting => ("◐", Role::Busy),
        Outcome::Unchanged | Outcome::Gone => ("·", Role::Dim),
    }
}
