//! Deletion, and what it leaves.

pub(crate) mod created_while_deleting;
pub(crate) mod finalizer_order;
pub(crate) mod namespace_terminating;
pub(crate) mod stuck_deletion;
