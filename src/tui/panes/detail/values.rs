//! The effective values of the selected custom resource's release, each with who gives it. They are asked for
//! as long as they are in sight, and again when the object or the sources have changed.

use super::super::text::{Row, clean, cut, left, width};
use super::super::theme::Role;
use super::page::{DetailTab, Page, Stamp};
use crate::detail::parts::nothing;
use crate::keys::action::Do;
use crate::keys::action::{Action, Section, action};
use crate::pane::Tab;
use opdev_event::{EffectiveValue, ValueFrom, ValuesExplained, words};
use std::sync::Arc;

impl Tab {
    pub const VALUES: Tab = Tab("values");
}

/// The tab.
pub(super) struct Values;

impl DetailTab for Values {
    fn tab(&self) -> Tab {
        Tab::VALUES
    }

    fn title(&self) -> &'static str {
        "Values"
    }

    fn action(&self) -> Action {
        action(Tab::VALUES.0, Do::Show(Tab::VALUES), &["E"], Section::Look)
            .about(
                "values",
                "Show the effective values of the selected custom resource's chart, and who gives each.",
            )
            .also(&["explain", "origin"])
    }

    fn place(&self) -> u8 {
        11
    }

    fn about(&self, page: &Page<'_>) -> Option<String> {
        page.root.map(|seen| seen.key.name.clone())
    }

    fn stamp(&self, page: &Page<'_>) -> Stamp {
        Stamp::of_subject(page, page.state.version)
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let (state, cells) = (page.state, page.cells);
        let Some(root) = page.root else {
            return nothing(
                "Nothing is selected. The values of a custom resource's chart show here, each with who gives it.",
                cells,
            );
        };
        let own = |told: &&Arc<ValuesExplained>| told.object.key() == *root.key;
        let Some(told) = state.values.as_ref().filter(own) else {
            return nothing("Reading the values.", cells);
        };
        if let Some(problem) = &told.problem {
            return nothing(&words::one_line(problem), cells);
        }
        let columns = Columns::of(&told.values, cells);
        let given = |from: ValueFrom| told.values.iter().filter(|value| value.from == from).count();
        let mut heading = Row::new(Role::Title, format!(" {} values of {}", told.values.len(), told.chart));
        for (from, words) in [
            (ValueFrom::CustomResource, "by the custom resource"),
            (ValueFrom::Override, "by overrides"),
            (ValueFrom::Global, "by globals"),
        ] {
            if given(from) > 0 {
                heading = heading.and(Role::Dim, " · ").and(role(from), format!("{} {words}", given(from)));
            }
        }
        let rows = told.values.iter().map(|value| columns.row(value));
        std::iter::once(heading).chain(rows).collect()
    }
}

/// How a giver looks: what is not the chart's own stands out.
fn role(from: ValueFrom) -> Role {
    match from {
        ValueFrom::Default | ValueFrom::Subchart => Role::Dim,
        ValueFrom::Global => Role::Changed,
        ValueFrom::CustomResource => Role::Good,
        ValueFrom::Override => Role::Busy,
        ValueFrom::Unknown => Role::Bad,
    }
}

/// How wide path and value are; the origin has the rest.
struct Columns {
    path: usize,
    value: usize,
}

impl Columns {
    fn of(values: &[EffectiveValue], cells: usize) -> Columns {
        let widest = |text: fn(&EffectiveValue) -> &str, most: usize| {
            values.iter().map(|value| width(text(value))).max().unwrap_or(0).min(most)
        };
        let most = (cells / 3).max(8);
        Columns { path: widest(|value| &value.path, most), value: widest(|value| &value.value, most) }
    }

    fn row(&self, value: &EffectiveValue) -> Row {
        let fit = |text: &str, cells: usize| left(&cut(&clean(text), cells), cells);
        Row::new(Role::Key, format!(" {}", fit(&value.path, self.path)))
            .and(Role::Text, format!("  {}", fit(&value.value, self.value)))
            .and(role(value.from), format!("  {}", clean(&value.origin)))
    }
}
