//! The tabs of the detail pane, a file each. Pure: what they see (`page`) in, coloured rows out. How
//! differences look is in `detail/changes.rs`. A new tab is a file with its name, its key and its lines, and
//! a place in the list below.

mod calls;
mod changes;
mod conditions;
mod describe;
mod events;
mod history;
pub mod impact;
mod log;
mod log_groups;
pub mod made_of;
mod objects;
pub mod page;
pub mod parts;
pub mod pods;
mod reconcile;
pub mod search;
mod status;
mod values;
mod yaml;

use super::pane::Tab;
use super::text::Row;
use page::DetailTab;

/// All tabs, in the order of their bar.
pub static TABS: [&dyn DetailTab; 12] = [
    &status::Status,
    &objects::Objects,
    &calls::Calls,
    &log::Log,
    &describe::Describe,
    &yaml::Yaml,
    &conditions::Conditions,
    &history::History,
    &pods::Pods,
    &impact::Impact,
    &values::Values,
    &events::Events,
];

impl Tab {
    /// The content.
    pub fn part(self) -> &'static dyn DetailTab {
        TABS.iter().find(|part| part.tab() == self).copied().unwrap_or(&status::Status)
    }
}

/// The rows of changes, for a dialog.
pub fn change_rows(changes: &[opdev_object::diff::Change]) -> Vec<Row> {
    changes::rows(changes, 0)
}
