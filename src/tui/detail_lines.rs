//! Brings the lines of the detail pane up to a state. They are made anew only when what they are made of has
//! changed.

use super::view::ViewState;
use opdev_panes::detail::made_of::MadeOf;
use opdev_panes::detail::page::{Made, Page, Stamp};
use opdev_panes::detail_pane::Lines;
use opdev_panes::pane::Pane;
use opdev_state::State;

impl ViewState {
    /// The input of the open tab.
    pub(super) fn page<'a>(&'a self, state: &'a State, cells: usize) -> Page<'a> {
        Page {
            state,
            cells,
            root: self.root(state),
            subject: self.subject(state),
            reconcile: self.reconcile(),
            reconcile_chosen: self.reconciles.selection.key.is_some(),
            all: self.all,
            how: &self.detail.how,
            container: self.detail.container.as_ref(),
            log_level: self.detail.log_level,
            log_followed: self.detail.log_followed,
            stick: self.detail.stick,
            zone: &self.look.zone,
            keys: &self.keys.map,
        }
    }

    /// Returns true if the detail pane is on the screen, as last drawn.
    pub(super) fn sees_detail(&self) -> bool {
        self.focus == Pane::Detail || self.screen.shows(Pane::Detail)
    }

    /// Brings the lines up to a state.
    pub(super) fn refresh_lines(&mut self, state: &State, width: usize) {
        let part = self.detail.tab.part();
        let page = self.page(state, width);
        let Stamp { object, number, dropped } = part.stamp(&page);
        let made_of = MadeOf {
            tab: self.detail.tab,
            reconcile: page.reconcile.map(|reconcile| reconcile.id),
            object,
            stamp: number,
            dropped,
            width,
            wrap: self.detail.wrap,
            all: self.all,
            how: self.detail.how.clone(),
            container: self.detail.container.clone(),
            filter: self.detail.filter.clone(),
            level: self.detail.log_level,
        };
        let made_of = self.held(made_of);
        if self.detail.lines.made_of.as_ref() == Some(&made_of) {
            return;
        }
        let before = std::mem::take(&mut self.detail.lines);
        let Made { rows, first } = part.lines(&self.page(state, width), &made_of, before);
        if let Some(first) = first {
            (self.detail.scroll, self.detail.stick) = (first, false);
        }
        self.detail.lines = Lines { rows, made_of: Some(made_of) };
        self.detail.search.forget_lines();
    }

    /// A log that is held shows what it showed: new lines only count.
    fn held(&self, made_of: MadeOf) -> MadeOf {
        let known = self.detail.lines.made_of.as_ref();
        let holds = made_of.tab.part().holds_still() && !self.detail.stick;
        let Some(known) = known.filter(|_| holds) else { return made_of };
        let same = MadeOf { stamp: known.stamp, dropped: known.dropped, ..made_of.clone() };
        if same == *known { same } else { made_of }
    }
}
