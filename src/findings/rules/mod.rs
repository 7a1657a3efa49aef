//! The rules, one file each: what is wrong, what to do, what is never accused, the judgement, and its tests.
//! A new rule is a file, with its line in the `mod.rs` of its folder and in `RULES`.

pub(super) mod answers;
pub(super) mod cache;
mod deletion;
pub(super) mod loops;
mod owners;

use super::rule::{Guessed, Rule, Told};
use opdev_event::FindingSeverity;

/// All of them; what explains others comes before these.
pub static RULES: &[&Rule] = &[
    &answers::panic::RULE,
    &answers::kind_missing::RULE,
    &answers::refused_write::RULE,
    &answers::own_object_gone::RULE,
    &answers::missing_right::RULE,
    &deletion::namespace_terminating::RULE,
    &owners::name_collision::RULE,
    &loops::fight::RULE,
    &owners::foreign_object::RULE,
    &loops::unstable_output::RULE,
    &loops::status_each_time::RULE,
    &loops::hot_loop::RULE,
    &loops::requeue_storm::RULE,
    &loops::object_growth::RULE,
    &loops::event_flood::RULE,
    &loops::write_without_change::RULE,
    &loops::call_budget::RULE,
    &loops::noisy_watch::RULE,
    &owners::missing_owner::RULE,
    &owners::cross_namespace_owner::RULE,
    &owners::owner_gone::RULE,
    &owners::missing_watch::RULE,
    &owners::event_dropped::RULE,
    &owners::referenced_unwatched::RULE,
    &owners::left_behind::RULE,
    &owners::change_not_applied::RULE,
    &owners::drift_left::RULE,
    &owners::config_not_rolled::RULE,
    &owners::foreign_metadata::RULE,
    &owners::overlapping_selector::RULE,
    &deletion::finalizer_order::RULE,
    &deletion::stuck_deletion::RULE,
    &deletion::created_while_deleting::RULE,
    &cache::duplicate::RULE,
    &cache::lost_update::RULE,
    &cache::conflict::RULE,
    &cache::stale_read::RULE,
    &cache::cache_too_wide::RULE,
    &cache::cache_mutated::RULE,
    &loops::blocked_worker::RULE,
    &loops::process_growth::RULE,
    &answers::pruned_field::RULE,
    &answers::lost_status::RULE,
    &answers::ready_too_early::RULE,
    &answers::no_observed_generation::RULE,
    &owners::name_budget::RULE,
    &answers::error_swallowed::RULE,
    &answers::same_error::RULE,
    &answers::result_ignored::RULE,
    &answers::failure_not_told::RULE,
    &answers::not_idempotent_after_restart::RULE,
    &answers::deprecated_api::RULE,
];

/// Takes back what a guessed reconcile does not prove.
pub(super) fn doubt(told: &mut Vec<Told>) {
    told.retain(|one| one.rule.guessed != Guessed::Never);
    for one in told.iter_mut().filter(|one| one.rule.guessed == Guessed::Warning) {
        one.severity = one.severity.max(FindingSeverity::Warning);
    }
}

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
