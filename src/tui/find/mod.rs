//! Finding things: the palette, jumps, what the lists show and in which order, searching in the detail pane, how much
//! of the log is shown. View changes only; the rows of `keys/registry.rs` name these functions.

pub(crate) mod choice;
pub(crate) mod gather;
pub(crate) mod picker;
pub(crate) mod search_step;

use super::act::leave::asks_before_leaving;
use super::act::programs;
use super::dialog::{Answer, Leave, Samples};
use super::draw::shown_columns;
use super::view::ViewState;
use crate::find::gather::is_here;
use opdev_event::{Level, ObjectTask, OperatorTask, Place, SessionRequest, Task};
use opdev_object::meta::ObjectKey;
use opdev_panes::disabled::NotNow;
use opdev_panes::keys::action::{Do, Seek};
use opdev_panes::lists::candidates::Item;
use opdev_panes::lists::table::{Column, Sort};
use opdev_panes::pane::{Pane, Tab};
use opdev_panes::theme::Theme;
use opdev_state::{Seen, State, tree};
use std::sync::Arc;

/// Sorts by the next column.
pub(crate) fn sort(view: &mut ViewState, state: &State) {
    if view.browse.is_some() {
        return view.sort_table(state);
    }
    let columns = shown_columns(view, state);
    let at = columns.iter().position(|column| *column == view.resources.sort.by).map_or(0, |at| at + 1);
    let by = columns.get(at).cloned().unwrap_or(Column::Kind);
    view.resources.sort = Sort { by, down: false };
}

/// Sorts by one column; a second time turns the order around.
pub(crate) fn sort_by(view: &mut ViewState, by: Column) {
    let sort = &view.resources.sort;
    let down = sort.by == by && !sort.down;
    view.resources.sort = Sort { by, down };
    view.look_at(Pane::Resources);
}

pub(crate) fn can_sort_by(view: &ViewState, _: &State) -> Result<(), NotNow> {
    if view.browse.is_some() {
        let key = view.keys.map.text(Do::Seek(Seek::Sort));
        return Err(format!("{key} sorts the rows of a table by its next column").into());
    }
    Ok(())
}

/// Turns the order of the rows around.
pub(crate) fn turn(view: &mut ViewState, _: &State) {
    let sort = match view.browse.as_mut() {
        Some(table) => table.sort.as_mut().map(|sort| &mut sort.down),
        None => Some(&mut view.resources.sort.down),
    };
    if let Some(down) = sort {
        *down = !*down;
    }
}

pub(crate) fn can_turn(view: &ViewState, _: &State) -> Result<(), NotNow> {
    if view.browse.as_ref().is_some_and(|table| table.sort.is_none()) {
        let key = view.keys.map.text(Do::Seek(Seek::Sort));
        return Err(format!("the rows are in the API server's order; {key} sorts them").into());
    }
    Ok(())
}

pub(crate) fn can_filter_faults(view: &ViewState, _: &State) -> Result<(), NotNow> {
    if view.browse.is_some() {
        return Err("a table of the API server does not say what is a fault; / filters its rows".into());
    }
    Ok(())
}

pub(crate) fn can_widen(view: &ViewState, state: &State) -> Result<(), NotNow> {
    let possible = view.browse.is_some()
        || view.resources.wide
        || state.kinds().iter().any(|kind| !kind.columns.is_empty());
    possible.then_some(()).ok_or_else(|| "no CRD asks for columns (additionalPrinterColumns)".into())
}

pub(crate) fn can_choose_context(_: &ViewState, state: &State) -> Result<(), NotNow> {
    state.started.as_ref().map(drop).ok_or(NotNow::NotConnected)
}

pub(crate) fn is_searching(view: &ViewState, _: &State) -> Result<(), NotNow> {
    if view.detail.search.text.is_empty() {
        return Err("nothing is searched for".into());
    }
    Ok(())
}

pub(crate) fn can_say_more(view: &ViewState, _: &State) -> Result<(), NotNow> {
    if view.detail.log_level == Level::Trace {
        return Err("all levels are shown".into());
    }
    Ok(())
}

pub(crate) fn can_say_less(view: &ViewState, _: &State) -> Result<(), NotNow> {
    if view.detail.log_level == Level::Error {
        return Err("only errors are shown".into());
    }
    Ok(())
}

/// Clicks with the mouse, or leaves it to the terminal.
pub(crate) fn turn_mouse(view: &mut ViewState, _: &State) {
    view.look.mouse = !view.look.mouse;
    let on = "✓ the mouse clicks and scrolls; text is selected with shift held";
    let off = "✓ the mouse is the terminal's: it selects text";
    view.told.message = Some(if view.look.mouse { on } else { off }.to_owned());
}

/// Shows the log and lets it stand still, or follow.
pub(crate) fn hold_log(view: &mut ViewState, _: &State) {
    if view.detail.tab != Tab::LOG {
        view.show(Tab::LOG);
    }
    view.detail.stick = !view.detail.stick;
}

pub(crate) fn louder(level: Level) -> Level {
    match level {
        Level::Error => Level::Warn,
        Level::Warn => Level::Info,
        Level::Info => Level::Debug,
        Level::Debug | Level::Trace => Level::Trace,
    }
}

pub(crate) fn quieter(level: Level) -> Level {
    match level {
        Level::Trace => Level::Debug,
        Level::Debug => Level::Info,
        Level::Info => Level::Warn,
        Level::Warn | Level::Error => Level::Error,
    }
}

impl ViewState {
    /// The row of a custom resource, with the health from its children.
    pub(super) fn row(&mut self, state: &State, seen: &Arc<Seen>) -> tree::Row {
        self.resources.table.row(state, seen)
    }

    /// Does what was chosen from a list.
    pub(super) fn choose(&mut self, item: Item, state: &State) -> Answer {
        match item {
            Item::Action(does) => match self.possible(does, state) {
                Ok(()) => return Answer::Act(does),
                Err(why) => {
                    let title = self.keys.map.by(does).map_or("", |action| action.title);
                    self.told.message = Some(format!("{title}: {why}"));
                }
            },
            Item::Object(key) => self.go_to(&key, state),
            Item::Kind { group, kind } if state.is_custom(&group, &kind) => self.show_kind(&kind),
            Item::Kind { group, kind } => {
                let word = if group.is_empty() { kind } else { format!("{kind}.{group}") };
                self.open_table(&word.to_lowercase(), "");
            }
            Item::Own(at) => match programs::start(at, self, state) {
                Ok(programs::Start::Ask(request)) => return Answer::Ask(request),
                Ok(programs::Start::Confirm(confirm)) => {
                    return Answer::Open(Box::new(confirm));
                }
                Err(why) => self.told.message = Some(why.to_string()),
            },
            Item::Port(pair) => match programs::forward_request(&pair, self, state) {
                Ok(request) => return Answer::Ask(request),
                Err(why) => self.told.message = Some(format!("forward: {why}")),
            },
            Item::Table(name) => self.open_table(&name, ""),
            Item::Source { kind, .. } => self.show_kind(&kind),
            Item::Sample(path) => return Answer::Open(Box::new(Samples::like(path))),
            Item::File(file) => return Answer::OpenFile(Place { file, line: 0, column: 0 }),
            Item::Reconcile { id, object } => {
                self.go_to(&object, state);
                self.go_to_reconcile(id, state);
            }
            Item::Namespace(namespace) => {
                self.show_namespace(namespace, state);
            }
            Item::Context(to) if is_here(&to, state) => {
                self.told.message = Some(format!("opdev runs on {to} already"));
            }
            Item::Context(to) if asks_before_leaving(state) => {
                return Answer::Open(Box::new(Leave::to(to)));
            }
            Item::Context(to) => {
                let how = state.started.as_ref().and_then(|started| started.on_exit).unwrap_or_default();
                return Answer::Ask(SessionRequest::Switch { to, how }.into());
            }
            Item::Failure(how) => {
                let pods = self.targets(state).into_iter().map(|seen| seen.object_ref.clone());
                let mut tasks: Vec<Task> = pods.map(|pod| ObjectTask::FailPod { pod, how }.into()).collect();
                return match (tasks.pop(), tasks.is_empty()) {
                    (None, _) => Answer::Close,
                    (Some(one), true) => Answer::Ask(one.into()),
                    (Some(last), false) => {
                        tasks.push(last);
                        Answer::Ask(Task::Each { tasks }.into())
                    }
                };
            }
            Item::Disturb(None) => return Answer::Ask(OperatorTask::Disturb { rules: Vec::new() }.into()),
            Item::Disturb(Some(rule)) => {
                return Answer::Ask(
                    OperatorTask::Disturb { rules: super::act::reconciles::toggled(&rule, state) }.into(),
                );
            }
            Item::Theme(name) => self.look.theme = Theme::named(name).unwrap_or(self.look.theme),
        }
        Answer::Close
    }

    /// Shows one namespace, or all that opdev runs in.
    pub(crate) fn show_namespace(&mut self, namespace: Option<String>, state: &State) {
        let outside = state.started.as_ref().filter(|started| !started.all_namespaces);
        if let (Some(started), true) = (outside, namespace.is_none()) {
            let only = &started.namespace;
            self.told.message = Some(format!("opdev runs in the namespace {only} only; -A takes all"));
        }
        self.namespace = namespace;
    }

    fn show_kind(&mut self, kind: &str) {
        self.close_table();
        self.resources.filter = format!("k:{kind}");
        self.look_at(Pane::Resources);
    }

    /// Selects an object, wherever it stands; what hides it is cleared.
    pub(super) fn go_to(&mut self, key: &ObjectKey, state: &State) {
        self.close_table();
        let Some(root) = tree::root_of(state, key) else {
            if state.objects.get(key).is_none() && !state.objects.is_unrelated(key) {
                self.told.message = Some(format!("{} {} is gone", key.kind, key.name));
                return;
            }
            // In the lists there is no place for it.
            let word =
                if key.group.is_empty() { key.kind.clone() } else { format!("{}.{}", key.kind, key.group) };
            self.namespace = self.namespace.take().filter(|only| key.namespace.as_ref() == Some(only));
            self.open_table(&word.to_lowercase(), "");
            self.select_row(key);
            self.told.message = Some(format!(
                "{} {} belongs to no custom resource of the project; this is the table of its kind",
                key.kind, key.name
            ));
            return;
        };
        let hidden = |view: &ViewState| !view.resources.rows.iter().any(|seen| seen.key == root);
        if hidden(self) {
            self.resources.filter.clear();
            (self.resources.faults, self.namespace) = (false, None);
        }
        self.resources.selection.key = Some(Arc::clone(&root).as_ref().clone());
        self.refresh(state);
        if *root == *key {
            return self.look_at(Pane::Resources);
        }
        self.owned.filter.clear();
        self.refresh(state);
        self.look_at(Pane::Owned);
        self.owned.moved = true;
        self.owned.selection.key = Some(key.clone());
        self.refresh(state);
        if self.owned.selection.key.as_ref() != Some(key) {
            self.told.message = Some(format!("{} {} is an older one, behind the newest", key.kind, key.name));
        }
    }
}
