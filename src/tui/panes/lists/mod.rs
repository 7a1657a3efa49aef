//! Lists: the rows of resources, owned objects, reconciles and of the table of a kind; their filter, marks
//! and selection.

pub mod candidates;
pub mod filter;
pub mod finding_columns;
pub mod kind_table;
pub mod marks;
pub mod owned_tree;
pub mod pane_rows;
pub mod reconcile_columns;
pub mod reconcile_list;
pub mod resource_list;
pub mod selection;
pub mod table;
