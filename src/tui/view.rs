//! The view of the terminal, in parts: each pane, what lies over them, keys, looks, the screen as last drawn.
//! Everything else is in the `State`. `refresh` brings the parts up to a state; selections follow their
//! objects, not their rows.

use super::asked::{Asked, Questions, Requests};
use super::keys::keymap::Typing;
use super::layer::Layer;
use super::settings::appearance::Look;
use super::shown_notices::Told;
use opdev_event::Reconcile;
use opdev_object::meta::ObjectKey;
use opdev_panes::below::Below;
use opdev_panes::detail_pane::DetailPane;
use opdev_panes::lists::candidates::Finder;
use opdev_panes::lists::kind_table::Browse;
use opdev_panes::lists::marks::Marks;
use opdev_panes::lists::owned_tree::OwnedTree;
use opdev_panes::lists::reconcile_list::ReconcileList;
use opdev_panes::lists::resource_list::ResourceList;
use opdev_panes::log_pane::LogPane;
use opdev_panes::pane::Pane;
use opdev_panes::screen::Screen;
use opdev_state::{Seen, State};
use std::sync::Arc;
use std::time::Duration;

/// The part of the screen's state that the terminal alone knows: focus, selections, open tabs.
#[derive(Default)]
pub struct ViewState {
    /// The pane that keys go to.
    pub focus: Pane,
    /// The list that the detail pane's object comes from.
    pub(super) chosen_in: Pane,
    /// The pane that is in sight where the reconciles, the detail pane and the operator log share a place.
    pub(super) below: Below,
    /// True if the focused pane has the whole screen.
    pub zoom: bool,
    /// Where one came from into the page that has the whole screen.
    pub(super) page_from: Option<Pane>,
    /// True if reconciles and log are those of all objects.
    pub all: bool,
    /// The one namespace that is shown.
    pub(super) namespace: Option<String>,
    /// True if deleted objects are in the lists.
    pub(super) gone: bool,
    pub(super) resources: ResourceList,
    /// The table of one kind, while it stands in the place of that list.
    pub(super) browse: Option<Browse>,
    pub(super) owned: OwnedTree,
    pub(super) reconciles: ReconcileList,
    pub(super) detail: DetailPane,
    pub(super) log: LogPane,
    /// The object that these were made for last.
    pub(super) made_for: Option<Option<ObjectKey>>,
    pub(super) marks: Marks,
    /// The layers over the panes, the topmost last.
    pub(super) layers: Vec<Box<dyn Layer>>,
    pub(super) finder: Finder,
    pub(super) told: Told,
    pub(super) questions: Questions,
    pub(super) asked: Asked,
    pub(super) requests: Requests,
    pub(super) keys: Typing,
    pub(super) look: Look,
    pub(super) screen: Screen,
    /// The user asked to leave.
    pub leaving: bool,
    /// How many clusters were left before the one that is shown.
    pub(super) left: u64,
}

impl ViewState {
    /// The selected custom resource.
    pub fn root<'a>(&'a self, state: &'a State) -> Option<&'a Arc<Seen>> {
        if self.browse.is_some() {
            return self.table_subject(state);
        }
        state.present_or_gone(self.resources.selection.key.as_ref()?)
    }

    /// The object that YAML, scale and delete are about.
    pub fn subject<'a>(&'a self, state: &'a State) -> Option<&'a Arc<Seen>> {
        let owned = self.owned.selection.key.as_ref().filter(|_| self.chosen_in == Pane::Owned);
        owned.and_then(|key| state.present_or_gone(key)).or_else(|| self.root(state))
    }

    /// The selected reconcile; the newest where none is.
    pub(super) fn reconcile(&self) -> Option<&Arc<Reconcile>> {
        self.reconciles.selected()
    }

    /// Gives the focus to a pane.
    pub(super) fn look_at(&mut self, pane: Pane) {
        // Beside a table there are no reconciles.
        let pane = if self.browse.is_some() && pane == Pane::Reconciles { Pane::Detail } else { pane };
        // A pane that is looked at is no page.
        if self.page_from.take().is_some() {
            self.zoom = false;
        }
        self.focus = pane;
        self.below.show(pane);
        if matches!(pane, Pane::Resources | Pane::Owned) && self.chosen_in != pane {
            self.chosen_in = pane;
            self.detail.scroll = 0;
        }
    }

    /// Selects a reconcile.
    pub(super) fn go_to_reconcile(&mut self, id: u64, state: &State) {
        self.reconciles.filter.clear();
        self.reconciles.selection.key = Some((id, 0));
        self.refresh(state);
        if self.reconciles.selection.key != Some((id, 0))
            && self.reconciles.list.iter().any(|reconcile| reconcile.id == id)
        {
            // It stands behind a newer retry of the same failure.
            self.reconciles.unfold(id);
            self.refresh(state);
        }
        if self.reconciles.selection.key != Some((id, 0)) {
            self.told.message = Some(format!("reconcile #{id} is no longer kept"));
        }
        self.look_at(Pane::Reconciles);
    }

    /// Brings the lists up to a state.
    pub(super) fn refresh(&mut self, state: &State) {
        self.arrive(state);
        self.follow_preferences(state);
        self.refresh_table(state);
        self.settle_marks(state);
        let touched = self.resources.refresh(state, self.namespace.as_ref(), self.gone);
        let root = match &self.browse {
            Some(_) => self.root(state).map(|seen| seen.key.as_ref().clone()),
            None => self.resources.selection.key.clone(),
        };
        let touched = touched.has(root.clone().map(Arc::new).as_ref());
        if self.made_for.as_ref() != Some(&root) {
            self.owned.forget_selection();
            self.reconciles.selection = opdev_panes::lists::selection::Selection::default();
            self.detail.scroll = 0;
        }
        self.owned.refresh(state, root.as_ref(), self.gone, touched);
        self.reconciles.refresh(state, root.as_ref().filter(|_| !self.all));
        self.made_for = Some(root);
    }

    /// Asks to be woken when this much time has passed.
    pub(super) fn wake_in(&mut self, duration: Duration) {
        let wake = &mut self.screen.wake;
        *wake = Some(wake.map_or(duration, |known| known.min(duration)));
    }
}
