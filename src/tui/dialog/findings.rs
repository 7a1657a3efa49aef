//! Errors of the operator: a list, worst first, and below it the page of the chosen one.

use super::answer::Answer;
use crate::draw::boxes::boxed;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use jiff::Timestamp;
use opdev_event::{RuleFinding, words};
use opdev_panes::finding_sign::{role, sign};
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, clean, left, right, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;
use std::time::Duration;

/// Rows of the list beside the page.
const ROWS: usize = 8;

/// The dialog. It holds on to a finding, not to a place: what is counted meanwhile moves nothing.
#[derive(Debug, Default)]
pub(crate) struct FindingsList {
    chosen: Option<u64>,
    /// The first line of the page that is shown.
    scroll: usize,
}

impl FindingsList {
    fn index(&self, state: &State) -> usize {
        let all = state.findings.all();
        self.chosen.and_then(|id| all.iter().position(|finding| finding.id == id)).unwrap_or(0)
    }

    fn go(&mut self, state: &State, to: usize) {
        let all = state.findings.all();
        self.chosen = all.get(to.min(all.len().saturating_sub(1))).map(|finding| finding.id);
        self.scroll = 0;
    }
}

impl Layer for FindingsList {
    fn key(&mut self, key: Key, _view: &mut ViewState, state: &State) -> Answer {
        let index = self.index(state);
        let chosen = state.findings.all().get(index);
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q' | 'i')) => return Answer::Close,
            (KeyCode::Down, _) | (_, Some('j')) => self.go(state, index + 1),
            (KeyCode::Up, _) | (_, Some('k')) => self.go(state, index.saturating_sub(1)),
            (KeyCode::PageDown, _) => self.scroll += 5,
            (KeyCode::PageUp, _) => self.scroll = self.scroll.saturating_sub(5),
            (KeyCode::Enter, _) | (_, Some('o')) => {
                if let Some(place) = chosen.and_then(|finding| finding.place.as_ref()) {
                    return Answer::OpenFile(place.file.clone());
                }
            }
            (_, Some('x')) => {
                if let Some(finding) = chosen {
                    return Answer::Copy("lines for opdev.yaml that ignore it", ignoring(finding));
                }
            }
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let all = state.findings.all();
        let cells = (canvas.body.width as usize).saturating_sub(6).min(114);
        let height = (canvas.body.height as usize).saturating_sub(5).max(4);
        if all.is_empty() {
            let text = " Nothing is wrong with the operator, as far as opdev has seen it. ";
            boxed("Findings", &[Row::new(Role::Dim, text)], None, view, canvas);
            return;
        }
        view.wake_in(Duration::from_secs(1));
        let index = self.index(state);
        let shown = all.len().min(ROWS).min(height / 2);
        let skip = (index + 1).saturating_sub(shown);
        let object = (cells / 3).clamp(12, 36);
        let what = cells.saturating_sub(object + 20);
        let mut rows: Vec<Row> = all
            .iter()
            .skip(skip)
            .take(shown)
            .map(|finding| {
                let title = match &finding.ended {
                    Some(_) => format!("ended: {}", finding.title),
                    None => finding.short(),
                };
                let name = words::short_ref(&finding.object);
                Row::new(role(finding), format!(" {} {} ", sign(finding), left(&clean(&title), what)))
                    .and(Role::Text, format!("{} ", left(&name, object)))
                    .and(
                        Role::Dim,
                        format!(
                            "{} {} ",
                            right(&format!("×{}", finding.times), 7),
                            seen(finding, canvas.now)
                        ),
                    )
            })
            .collect();
        if let Some(finding) = all.get(index) {
            let page = page(finding, state, cells, view);
            let most = height.saturating_sub(shown + 1).max(3);
            let from = self.scroll.min(page.len().saturating_sub(most));
            rows.push(Row::new(Role::Dim, format!(" {} of {} ", index + 1, all.len())));
            rows.extend(page.into_iter().skip(from).take(most));
        }
        let keys = Row::new(Role::Key, " ↑↓").and(Role::Text, " another  ");
        let keys = keys.and(Role::Key, "enter").and(Role::Text, " open code  ");
        let keys = keys.and(Role::Key, "x").and(Role::Text, " copy the lines that ignore it  ");
        rows.push(keys.and(Role::Key, "esc").and(Role::Text, " close "));
        let open = state.findings.open().count();
        let title = match all.len() - open {
            0 => format!("Findings · {open} open"),
            ended => format!("Findings · {open} open · {ended} ended"),
        };
        boxed(&title, &rows, Some(index - skip), view, canvas);
    }
}

/// When it was seen last.
fn seen(finding: &RuleFinding, now: Timestamp) -> String {
    let age = Duration::try_from(now.duration_since(finding.last)).unwrap_or_default();
    right(&if age.as_secs() < 2 { "now".to_owned() } else { words::age(age) }, 5)
}

/// All that is known of one.
fn page(finding: &RuleFinding, state: &State, cells: usize, view: &ViewState) -> Vec<Row> {
    let mut rows = Vec::new();
    let room = cells.saturating_sub(4).max(20);
    let mut say = |role, text: &str| {
        rows.extend(wrap(&clean(text), room).into_iter().map(|line| Row::new(role, format!("  {line}"))));
    };
    let zone = &view.look.zone;
    let time = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string();
    let because = match finding.explains.as_slice() {
        [] => String::new(),
        rules => format!(" · explains {}", rules.join(", ")),
    };
    say(
        role(finding),
        &format!("{} · {}{because} · since {}", finding.severity.name(), finding.rule, time(finding.first)),
    );
    if let Some(ended) = &finding.ended {
        say(Role::Good, &format!("{} ({})", ended.how, time(ended.at)));
    }
    say(Role::Text, &finding.why);
    if !finding.field.is_empty() {
        let about = finding.about.as_ref().unwrap_or(&finding.object);
        say(Role::Dim, &format!("Where  {about} {}", finding.field));
    }
    if let Some(place) = &finding.place {
        say(Role::Changed, &format!("Code   {place}"));
    }
    say(Role::Text, &format!("Fix    {}", finding.fix));
    if finding.since > 0 {
        let known: Vec<String> = finding.reconciles.iter().rev().map(|id| format!("#{id}")).collect();
        say(Role::Dim, &format!("Shown by reconciles {}; the first was #{}", known.join(" "), finding.since));
    }
    let _ = state;
    say(Role::Dim, &format!("opdev explain {} says more", finding.rule));
    rows
}

/// The lines of `opdev.yaml` that ignore a finding.
fn ignoring(finding: &RuleFinding) -> String {
    let object = &finding.object;
    format!(
        "findings:\n  ignore:\n    - rule: {}\n      kind: {}\n      name: {}\n      because: \n",
        finding.rule, object.gvk.kind, object.name
    )
}
