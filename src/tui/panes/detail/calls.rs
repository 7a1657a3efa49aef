//! The API calls of a reconcile on a scale of time.

use super::page::{DetailTab, Page, Stamp};
use super::reconcile::{NO_PASS, headline, timeline};
use crate::detail::parts::nothing;
use crate::keys::action::{Action, Do, Section, action};
use crate::pane::Tab;
use crate::text::Row;
use crate::theme::Role;

impl Tab {
    pub const CALLS: Tab = Tab("calls");
}

/// The tab.
pub(super) struct Calls;

impl DetailTab for Calls {
    fn tab(&self) -> Tab {
        Tab::CALLS
    }

    fn title(&self) -> &'static str {
        "Calls"
    }

    fn action(&self) -> Action {
        action(Tab::CALLS.0, Do::Show(Tab::CALLS), &[], Section::Look)
            .about("calls", "Show the API calls of the selected reconcile.")
    }

    fn place(&self) -> u8 {
        8
    }

    fn about(&self, page: &Page<'_>) -> Option<String> {
        page.reconcile_name()
    }

    fn stamp(&self, _page: &Page<'_>) -> Stamp {
        Stamp::number(0)
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let Some(reconcile) = page.reconcile else { return nothing(NO_PASS, page.cells) };
        if reconcile.calls.is_empty() {
            return vec![headline(reconcile), Row::new(Role::Dim, "   This reconcile made no API calls.")];
        }
        let mut rows = vec![headline(reconcile)];
        rows.extend(timeline(reconcile, page));
        rows
    }
}
