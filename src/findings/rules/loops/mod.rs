//! Loops, and calls that lead to nothing.

pub(crate) mod blocked_worker;
pub(crate) mod call_budget;
pub(crate) mod event_flood;
pub(crate) mod fight;
pub(crate) mod hot_loop;
pub(crate) mod noisy_watch;
pub(crate) mod object_growth;
pub(crate) mod process_growth;
pub(crate) mod requeue_storm;
pub(crate) mod status_each_time;
pub(crate) mod unstable_output;
pub(crate) mod write_without_change;
