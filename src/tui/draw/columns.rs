//! The columns that the list of the custom resources has, for drawing it and for sorting it.

use super::super::view::ViewState;
use opdev_event::PrinterColumn;
use opdev_panes::lists::table::Column;
use opdev_state::State;

/// The columns that the list shows, in their order.
pub(crate) fn shown_columns(view: &ViewState, state: &State) -> Vec<Column> {
    let mut all = vec![Column::Kind];
    if view.resources.namespaces_differ || view.resources.namespace_shown {
        all.push(Column::Namespace);
    }
    all.push(Column::Name);
    all.extend(printer_columns(view, state).into_iter().map(Column::Printer));
    all.extend([Column::Status, Column::Ready, Column::Age]);
    all
}

/// The printer columns of the selected kind, where they are wanted.
pub(super) fn printer_columns(view: &ViewState, state: &State) -> Vec<PrinterColumn> {
    let kind = view
        .root(state)
        .filter(|_| view.resources.wide)
        .and_then(|root| state.kinds().iter().find(|kind| kind.gvk.group_kind() == root.key.group_kind()));
    kind.map(|kind| kind.columns.clone()).unwrap_or_default()
}
