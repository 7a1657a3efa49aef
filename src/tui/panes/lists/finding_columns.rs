//! Columns of the list of findings: which of them a width has room for.

use crate::finding_sign::{role, sign};
use crate::text::{Row, clean, cut_apart, cut_path, left, right};
use crate::theme::Role;
use jiff::Timestamp;
use opdev_event::{RuleFinding, words};
use std::time::Duration;

/// The width of TIMES and of LAST SEEN, the gap before them included.
const TIMES: usize = 8;
const LAST: usize = 11;
/// From these widths on, the list has them.
const WITH_TIMES: usize = 44;
const WITH_LAST: usize = 60;
/// From this width on, the list has a column for the place in the code.
const WITH_PLACE: usize = 110;

/// The width of each column of the list; 0 leaves one out.
pub struct FindingColumns {
    what: usize,
    object: usize,
    place: usize,
    times: usize,
    last: usize,
}

impl FindingColumns {
    pub fn of(cells: usize) -> FindingColumns {
        let object = (cells / 4).clamp(10, 34);
        let place = if cells >= WITH_PLACE { 32 } else { 0 };
        let gaps = 2 + usize::from(place > 0);
        let last = if cells >= WITH_LAST { LAST } else { 0 };
        let times = if cells >= WITH_TIMES { TIMES } else { 0 };
        let what = cells.saturating_sub(4 + object + place + gaps + times + last + 1);
        FindingColumns { what, object, place, times, last }
    }

    pub fn head(&self) -> Row {
        let place = if self.place > 0 { left("PLACE", self.place + 1) } else { String::new() };
        let texts = format!("    {} {} ", left("WHAT IS WRONG", self.what), left("OBJECT", self.object));
        Row::new(
            Role::Dim,
            format!("{texts}{place}{}{}", right("TIMES", self.times), right("LAST SEEN", self.last)),
        )
    }

    pub fn row(&self, finding: &RuleFinding, chosen: bool, now: Timestamp) -> Row {
        let title = match &finding.ended {
            Some(_) => format!("ended: {}", finding.title),
            None => finding.short(),
        };
        let name = finding.object.name.clone();
        let both = words::short_ref(&finding.object);
        let name = if crate::text::width(&both) <= self.object { both } else { name };
        let name = cut_apart(&[clean(&name).as_str()], self.object).concat();
        let place = finding.place.as_ref().map(ToString::to_string).unwrap_or_default();
        let place = match self.place {
            0 => String::new(),
            cells => format!("{} ", left(&cut_path(&clean(&place), cells), cells)),
        };
        Row::new(Role::Text, if chosen { "▸ " } else { "  " })
            .and(role(finding), format!("{} {} ", sign(finding), left(&clean(&title), self.what)))
            .and(Role::Text, format!("{} {place}", left(&name, self.object)))
            .and(Role::Dim, right(&format!("×{}", finding.times), self.times))
            .and(Role::Dim, right(&seen(finding, now), self.last))
    }
}

/// When it was seen last.
fn seen(finding: &RuleFinding, now: Timestamp) -> String {
    let age = Duration::try_from(now.duration_since(finding.last)).unwrap_or_default();
    if age.as_secs() < 2 { "now".to_owned() } else { format!("{} ago", words::short_age(age)) }
}
