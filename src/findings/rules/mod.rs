//! The rules, one file each: what is wrong, what to do, what is never accused, and the judgement.

pub(super) mod blocked_worker;
pub(super) mod conflict;
pub(super) mod created_while_deleting;
pub(super) mod cross_namespace_owner;
pub(super) mod event_dropped;
pub(super) mod event_flood;
pub(super) mod fight;
pub(super) mod finalizer_order;
pub(super) mod foreign_object;
pub(super) mod hot_loop;
pub(super) mod left_behind;
pub(super) mod lost_status;
pub(super) mod lost_update;
pub(super) mod missing_owner;
pub(super) mod missing_right;
pub(super) mod missing_watch;
pub(super) mod name_budget;
pub(super) mod name_collision;
pub(super) mod namespace_terminating;
pub(super) mod no_observed_generation;
pub(super) mod object_growth;
pub(super) mod owner_gone;
pub(super) mod panic;
pub(super) mod pruned_field;
pub(super) mod refused_write;
pub(super) mod requeue_storm;
pub(super) mod same_error;
pub(super) mod stale_read;
pub(super) mod status_each_time;
pub(super) mod stuck_deletion;
pub(super) mod unstable_output;
pub(super) mod write_without_change;

use super::rule::Rule;

/// All of them; what explains others comes before these.
pub static RULES: &[&Rule] = &[
    &panic::RULE,
    &refused_write::RULE,
    &missing_right::RULE,
    &namespace_terminating::RULE,
    &name_collision::RULE,
    &fight::RULE,
    &foreign_object::RULE,
    &unstable_output::RULE,
    &status_each_time::RULE,
    &hot_loop::RULE,
    &requeue_storm::RULE,
    &object_growth::RULE,
    &event_flood::RULE,
    &write_without_change::RULE,
    &missing_owner::RULE,
    &cross_namespace_owner::RULE,
    &owner_gone::RULE,
    &missing_watch::RULE,
    &event_dropped::RULE,
    &left_behind::RULE,
    &finalizer_order::RULE,
    &stuck_deletion::RULE,
    &created_while_deleting::RULE,
    &lost_update::RULE,
    &conflict::RULE,
    &stale_read::RULE,
    &blocked_worker::RULE,
    &pruned_field::RULE,
    &lost_status::RULE,
    &no_observed_generation::RULE,
    &name_budget::RULE,
    &same_error::RULE,
];

/// The rule with this id.
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}

/// The text of a rule in `opdev explain` and in the docs.
pub fn page(rule: &Rule) -> String {
    format!(
        "{}\n\n*Told* ({}): {}\n\n*Never told*: {}\n\n*Fix*: {}\n",
        rule.what,
        rule.severity.name(),
        rule.when,
        rule.never,
        rule.fix
    )
}
