//! Requests that write objects: apply, scale, delete, undo, a pod that fails.

pub(crate) mod apply;
pub(crate) mod delete;
pub(crate) mod fail_pod;
pub(crate) mod scale;
pub(crate) mod send;
pub(crate) mod tried_write;
pub(crate) mod undo;
pub(crate) mod undo_list;
pub(crate) mod write;
