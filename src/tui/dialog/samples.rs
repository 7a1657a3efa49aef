//! Applying: a sample of the project, or a file by its path.

use super::answer::Answer;
use crate::draw::boxes::boxed;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{ObjectTask, Sample, ViewRequest};
use opdev_panes::keys::chord::Key;
use opdev_panes::lists::filter::passes;
use opdev_panes::text::{Row, cut_front, left, width};
use opdev_panes::theme::Role;
use opdev_state::State;

/// The dialog.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// The typed text that narrows the list.
    pub(crate) typed: String,
    /// The chosen row.
    index: usize,
}

impl Samples {
    /// The samples, narrowed to what is typed.
    pub(crate) fn like(typed: String) -> Self {
        Samples { typed, index: 0 }
    }
}

/// The samples that reconcile what was typed, and the typed text itself where it may be a file.
fn choices(state: &State, typed: &str) -> Vec<SampleRow> {
    let shown = |sample: &&Sample| {
        passes(
            typed,
            &format!("{} {} {}", sample.path, sample.kind_among(state.samples()), sample.object.name),
        )
    };
    let mut out: Vec<SampleRow> =
        state.samples().iter().filter(shown).cloned().map(SampleRow::Sample).collect();
    let typed = typed.trim();
    // `simple-armada` is not `simple-armada-backup`, wherever the two stand.
    let named =
        |choice: &SampleRow| matches!(choice, SampleRow::Sample(sample) if sample.object.name == typed);
    out.sort_by_key(|choice| !named(choice));
    let known = |out: &[SampleRow], path: &str| {
        out.iter().any(|choice| matches!(choice, SampleRow::Sample(sample) if sample.path == path))
    };
    if is_path(typed) {
        for path in state.paths.found.iter().filter(|path| path.starts_with(typed)) {
            if !known(&out, path) {
                out.push(SampleRow::Path(path.clone()));
            }
        }
        let listed = out.iter().any(|choice| matches!(choice, SampleRow::Path(path) if path == typed));
        if !listed && !known(&out, typed) {
            out.push(SampleRow::Path(typed.to_owned()));
        }
    }
    out
}

/// Returns true if a typed text may be a path.
fn is_path(typed: &str) -> bool {
    typed.contains('/')
        || typed.starts_with(['.', '~'])
        || [".yaml", ".yml", ".json"].iter().any(|end| typed.ends_with(end))
}

/// One row of the picker.
#[derive(Clone, Debug)]
enum SampleRow {
    /// A sample of the project.
    Sample(Sample),
    /// A path as typed.
    Path(String),
}

impl Layer for Samples {
    fn key(&mut self, key: Key, _view: &mut ViewState, state: &State) -> Answer {
        let choices = choices(state, &self.typed);
        self.index = self.index.min(choices.len().saturating_sub(1));
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) => return Answer::Close,
            (KeyCode::Enter, _) => {
                return match choices.into_iter().nth(self.index) {
                    Some(SampleRow::Sample(sample)) => {
                        Answer::Ask(ObjectTask::Apply { path: sample.path }.into())
                    }
                    Some(SampleRow::Path(path)) => Answer::Ask(ObjectTask::Apply { path }.into()),
                    None => Answer::Stay,
                };
            }
            // A path that is being typed is completed; what may follow is listed anew.
            (KeyCode::Tab, _) if matches!(choices.get(self.index), Some(SampleRow::Path(path)) if *path != self.typed) => {
                if let Some(SampleRow::Path(path)) = choices.get(self.index) {
                    path.clone_into(&mut self.typed);
                    self.index = 0;
                }
            }
            (KeyCode::Down | KeyCode::Tab, _) => {
                self.index = (self.index + 1).min(choices.len().saturating_sub(1));
                return Answer::Stay;
            }
            (KeyCode::Up | KeyCode::BackTab, _) => {
                self.index = self.index.saturating_sub(1);
                return Answer::Stay;
            }
            (KeyCode::Backspace, _) => {
                self.typed.pop();
                self.index = 0;
            }
            (KeyCode::Char('u' | 'w'), None) if key.ctrl => self.typed.clear(),
            (_, Some(c)) if self.typed.len() < 500 => {
                self.typed.push(c);
                self.index = 0;
            }
            _ => return Answer::Stay,
        }
        match is_path(self.typed.trim()) {
            true => Answer::AskOn(ViewRequest::ListPaths { typed: self.typed.trim().to_owned() }.into()),
            false => Answer::Stay,
        }
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let choices = choices(state, &self.typed);
        let index = self.index.min(choices.len().saturating_sub(1));
        let mut rows = vec![
            Row::new(Role::Key, " ▸ ")
                .and(Role::Text, format!("{}▏", self.typed))
                .and(Role::Dim, if self.typed.is_empty() { "type to narrow, or a path" } else { "" }),
        ];
        let height = (canvas.body.height as usize).saturating_sub(5).max(1);
        let skip = (index + 1).saturating_sub(height);
        let cells = (canvas.body.width as usize).saturating_sub(4);
        let kinds = choices.iter().filter_map(|choice| match choice {
            SampleRow::Sample(sample) => Some(width(&sample.kind_among(state.samples()))),
            SampleRow::Path(_) => None,
        });
        let kind_cells = kinds.max().unwrap_or_default().min(cells / 2);
        for choice in choices.iter().skip(skip).take(height) {
            rows.push(match choice {
                SampleRow::Sample(sample) => {
                    let kind = left(&sample.kind_among(state.samples()), kind_cells);
                    let what = format!(" {kind} {}", sample.object.name);
                    let path = cut_front(&sample.path, cells.saturating_sub(width(&what) + 3));
                    Row::new(Role::Text, what).and(Role::Dim, format!("  {path} "))
                }
                SampleRow::Path(path) if path.ends_with('/') => {
                    Row::new(Role::Text, format!(" the folder {path} "))
                }
                SampleRow::Path(path) => Row::new(Role::Text, format!(" the file {path} ")),
            });
        }
        if choices.is_empty() {
            let text = match state.samples() {
                [_, ..] => " No sample matches; a path ends in .yaml.",
                [] if state.reload.live.is_none() => " The project is not read yet; type the path of a file.",
                [] => " The project has no samples; type the path of a file.",
            };
            rows.push(Row::new(Role::Dim, text));
        }
        rows.push(
            Row::new(Role::Key, " enter")
                .and(Role::Text, " apply  ")
                .and(Role::Key, "esc")
                .and(Role::Text, " cancel"),
        );
        let selected = (!choices.is_empty()).then_some(1 + index - skip);
        boxed("Apply", &rows, selected, view, canvas);
    }

    fn paste(&mut self, text: &str, _view: &mut ViewState) {
        self.typed.push_str(text.trim());
        self.index = 0;
    }

    fn scrolls(&self) -> bool {
        true
    }
}
