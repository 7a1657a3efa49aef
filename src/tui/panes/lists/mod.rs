//! Lists: the rows of resources, owned objects, reconciles and of the table of a kind; their filter, marks and selection.

pub(crate) mod filter;
pub(crate) mod kind_table;
pub(crate) mod marks;
pub(crate) mod owned_tree;
pub(crate) mod pane_rows;
pub(crate) mod reconcile_list;
pub(crate) mod resource_list;
pub(crate) mod selection;
pub(crate) mod table;
