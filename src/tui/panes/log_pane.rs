//! The pane of the operator log: what the operator prints, as it comes, without opdev's own lines. New lines
//! are added to the ones already made. The log by reconcile, with levels and opdev's lines, is a tab of the
//! detail pane.

use super::lists::filter::Filter;
use super::lists::pane_rows::PanePart;
use super::text::Row;
use super::theme::Role;
use crate::detail::parts::clock;
use jiff::tz::TimeZone;
use opdev_event::{Level, LogLine, words};
use opdev_state::State;

/// Rows are made anew when this many have gathered.
const MOST: usize = 6_000;

/// The pane.
#[derive(Default)]
pub struct LogPane {
    /// The first visible line, where the newest ones are not followed.
    pub scroll: usize,
    /// True if one has scrolled up.
    pub held: bool,
    pub filter: String,
    pub rows: Vec<Row>,
    made_of: Option<(u64, u64, String, TimeZone)>,
}

impl LogPane {
    /// Brings the lines up to a state.
    pub fn refresh(&mut self, state: &State, zone: &TimeZone) {
        let log = &state.log;
        let now = (log.total, log.dropped, self.filter.clone(), zone.clone());
        if self.made_of.as_ref() == Some(&now) {
            return;
        }
        let lines = log.lines();
        let known = self.made_of.as_ref().filter(|known| {
            (known.1, &known.2, &known.3) == (now.1, &now.2, &now.3)
                && known.0 <= now.0
                && self.rows.len() < MOST
        });
        let fresh = known.map(|known| usize::try_from(now.0 - known.0).unwrap_or(usize::MAX));
        let skip = fresh.and_then(|fresh| lines.len().checked_sub(fresh));
        if skip.is_none() {
            self.rows.clear();
        }
        let filter = Filter::new(&self.filter);
        let rows = lines.iter().skip(skip.unwrap_or(0)).filter(|line| is_operators(line));
        let rows = rows.map(|line| row(line, zone));
        self.rows.extend(rows.filter(|row| filter.is_empty() || filter.text(&row.text())));
        self.made_of = Some(now);
    }
}

/// Returns true if the operator wrote a line: its own program, or a reconciler that opdev runs for it.
fn is_operators(line: &LogLine) -> bool {
    line.reconcile.is_some() || !["opdev", "kube_"].iter().any(|own| line.target.starts_with(own))
}

fn row(line: &LogLine, zone: &TimeZone) -> Row {
    let role = match line.level {
        Level::Error => Role::Bad,
        Level::Warn => Role::Busy,
        Level::Info | Level::Debug | Level::Trace => Role::Dim,
    };
    Row::new(Role::Dim, format!(" {} ", clock(line.at, zone)))
        .and(role, format!("{:5} ", words::level(line.level).to_uppercase()))
        .and(Role::Text, words::one_line(&line.message))
}

impl PanePart for LogPane {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn at(&self) -> usize {
        self.scroll
    }

    fn offset(&self) -> usize {
        self.scroll
    }

    fn go(&mut self, row: usize, height: usize) {
        let last = self.rows.len().saturating_sub(height);
        self.scroll = row.min(last);
        self.held = row < last;
    }

    fn filter(&self) -> &str {
        &self.filter
    }

    fn filter_mut(&mut self) -> &mut String {
        &mut self.filter
    }
}
