//! Finding things: the palette, jumps, what the lists show and in which order, searching in the detail pane,
//! how much of the log is shown. View changes only; `update` hands the keys of these actions to `perform`.

pub(crate) mod candidates;
pub(crate) mod gather;
pub(crate) mod last_search;
pub(crate) mod picker;
pub(crate) mod search_step;

use super::act::leave::asks_before_leaving;
use super::act::programs;
use super::dialog::{Answer, Leave, Samples, SearchLine};
use super::draw::shown_columns;
use super::view::ViewState;
use crate::find::candidates::{Item, What};
use crate::find::gather::is_here;
use crate::find::picker::open;
use crate::find::search_step::step;
use opdev_event::{Level, ObjectTask, OperatorTask, SessionRequest, Task};
use opdev_object::meta::ObjectKey;
use opdev_panes::disabled::NotNow;
use opdev_panes::keys::action::{Seek, SortKey};
use opdev_panes::keys::registry;
use opdev_panes::lists::table::{Column, Sort};
use opdev_panes::pane::{Pane, Tab};
use opdev_panes::theme::Theme;
use opdev_state::{Seen, State, tree};
use std::sync::Arc;

/// Does one of them.
pub(super) fn perform(view: &mut ViewState, seek: Seek, state: &State) {
    match seek {
        Seek::Palette => open(view, What::Palette, state),
        Seek::Jump => open(view, What::Jump, state),
        Seek::Namespace => open(view, What::Namespace, state),
        Seek::Context => open(view, What::Context, state),
        Seek::Theme => open(view, What::Theme, state),
        Seek::Faults => view.resources.faults = !view.resources.faults,
        Seek::Wide => view.resources.wide = !view.resources.wide,
        Seek::Sort if view.browse.is_some() => view.sort_table(state),
        Seek::Turn if view.browse.is_some() => {
            if let Some(sort) = view.browse.as_mut().and_then(|table| table.sort.as_mut()) {
                sort.down = !sort.down;
            }
        }
        Seek::Sort => {
            let columns = shown_columns(view, state);
            let at =
                columns.iter().position(|column| *column == view.resources.sort.by).map_or(0, |at| at + 1);
            let by = columns.get(at).cloned().unwrap_or(Column::Kind);
            view.resources.sort = Sort { by, down: false };
        }
        Seek::AllNamespaces => {
            view.show_namespace(None, state);
        }
        Seek::By(key) => {
            let by = match key {
                SortKey::Name => Column::Name,
                SortKey::Status => Column::Status,
                SortKey::Ready => Column::Ready,
                SortKey::Kind => Column::Kind,
                SortKey::Age => Column::Age,
            };
            let sort = &view.resources.sort;
            let down = sort.by == by && !sort.down;
            view.resources.sort = Sort { by, down };
            view.look_at(Pane::Resources);
        }
        Seek::Turn => view.resources.sort.down = !view.resources.sort.down,
        Seek::Mouse => {
            view.look.mouse = !view.look.mouse;
            let on = "✓ the mouse clicks and scrolls; text is selected with shift held";
            let off = "✓ the mouse is the terminal's: it selects text";
            view.told.message = Some(if view.look.mouse { on } else { off }.to_owned());
        }
        Seek::Text => view.open(SearchLine::of(view)),
        Seek::Next => step(view, true),
        Seek::Previous => step(view, false),
        Seek::MoreLog => view.detail.log_level = louder(view.detail.log_level),
        Seek::LessLog => view.detail.log_level = quieter(view.detail.log_level),
        Seek::Hold => {
            if view.detail.tab != Tab::LOG {
                view.show(Tab::LOG);
            }
            view.detail.stick = !view.detail.stick;
        }
    }
}

/// Checks that one of them is possible right now; the error says why not.
pub(super) fn enabled(seek: Seek, view: &ViewState, state: &State) -> Result<(), NotNow> {
    match seek {
        Seek::Context if state.started.is_none() => Err(NotNow::NotConnected),
        Seek::Next | Seek::Previous if view.detail.search.text.is_empty() => {
            Err("nothing is searched for".into())
        }
        Seek::Faults if view.browse.is_some() => {
            Err("a table of the API server does not say what is a fault; / filters its rows".into())
        }
        Seek::Turn if view.browse.as_ref().is_some_and(|table| table.sort.is_none()) => Err(format!(
            "the rows are in the API server's order; {} sorts them",
            view.keys.map.text(opdev_panes::keys::action::Do::Seek(Seek::Sort))
        )
        .into()),
        Seek::By(_) if view.browse.is_some() => {
            let key = view.keys.map.text(opdev_panes::keys::action::Do::Seek(Seek::Sort));
            Err(format!("{key} sorts the rows of a table by its next column").into())
        }
        Seek::Wide if view.browse.is_some() => Ok(()),
        Seek::Wide if !view.resources.wide && !state.kinds().iter().any(|kind| !kind.columns.is_empty()) => {
            Err("no CRD asks for columns (additionalPrinterColumns)".into())
        }
        Seek::MoreLog if view.detail.log_level == Level::Trace => Err("all levels are shown".into()),
        Seek::LessLog if view.detail.log_level == Level::Error => Err("only errors are shown".into()),
        Seek::Palette
        | Seek::Jump
        | Seek::Faults
        | Seek::Sort
        | Seek::Turn
        | Seek::Wide
        | Seek::Namespace
        | Seek::AllNamespaces
        | Seek::By(_)
        | Seek::Context
        | Seek::Theme
        | Seek::Mouse
        | Seek::Text
        | Seek::Next
        | Seek::Previous
        | Seek::MoreLog
        | Seek::LessLog
        | Seek::Hold => Ok(()),
    }
}

fn louder(level: Level) -> Level {
    match level {
        Level::Error => Level::Warn,
        Level::Warn => Level::Info,
        Level::Info => Level::Debug,
        Level::Debug | Level::Trace => Level::Trace,
    }
}

fn quieter(level: Level) -> Level {
    match level {
        Level::Trace => Level::Debug,
        Level::Debug => Level::Info,
        Level::Info => Level::Warn,
        Level::Warn | Level::Error => Level::Error,
    }
}

impl ViewState {
    /// What a custom resource makes of its children.
    pub(super) fn row(&mut self, state: &State, seen: &Arc<Seen>) -> tree::Row {
        self.resources.table.row(state, seen)
    }

    /// Does what was chosen from a list.
    pub(super) fn choose(&mut self, item: Item, state: &State) -> Answer {
        match item {
            Item::Action(does) => match super::act::enabled::enabled(does, self, state) {
                Ok(()) => return Answer::Act(does),
                Err(why) => {
                    let title = registry::by(does).map_or("", |action| action.title);
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
            Item::File(path) => return Answer::OpenFile(path),
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
                    OperatorTask::Disturb { rules: super::act::toggled(&rule, state) }.into(),
                );
            }
            Item::Theme(name) => self.look.theme = Theme::named(name).unwrap_or(self.look.theme),
        }
        Answer::Close
    }

    /// Shows one namespace, or all that opdev runs in.
    fn show_namespace(&mut self, namespace: Option<String>, state: &State) {
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
