//! Columns of the list of reconciles: which of them a width has room for, and what of a reason.

use crate::text::{cut_apart, cut_words, left, right, width};
use opdev_object::meta::ObjectRef;

/// The selection, what is open, the sign, and a blank.
const SIGN: usize = 4;
const TIME: usize = 9;
/// The width of RESULT.
pub const RESULT: usize = 13;
const TOOK: usize = 6;
const WROTE: usize = 19;
/// From these widths on there are TOOK and WROTE.
const WITH_TOOK: usize = 60;
const WITH_WROTE: usize = 90;
/// Less of a reason says nothing; TIME gives way before.
const LEAST_WHY: usize = 18;
/// The beginning of a reason of that sort.
const OWN_WRITE: &str = "operator's own write: ";

/// The texts of one row.
#[derive(Default)]
pub struct ReconcileCells {
    pub time: String,
    pub object: String,
    pub why: String,
    pub result: String,
    pub wrote: String,
    pub took: String,
}

/// The width of each column, its gap included; 0 leaves one out.
pub struct ReconcileColumns {
    time: usize,
    object: usize,
    why: usize,
    wrote: usize,
    took: usize,
    /// True if an object is called by its kind, and by its namespace.
    kind: bool,
    namespace: bool,
}

impl ReconcileColumns {
    pub fn of(all: bool, (kind, namespace): (bool, bool), cells: usize) -> Self {
        let mut columns = ReconcileColumns {
            time: TIME,
            object: if all { (cells / 4).clamp(12, 30) + 1 } else { 0 },
            why: 0,
            wrote: if cells >= WITH_WROTE { WROTE } else { 0 },
            took: if cells >= WITH_TOOK { TOOK } else { 0 },
            kind,
            namespace,
        };
        // The blank behind the last column belongs to the border.
        let rest = |columns: &ReconcileColumns| {
            let taken = SIGN + columns.time + columns.object + 1 + RESULT + columns.wrote + columns.took;
            cells.saturating_sub(taken + usize::from(columns.time > 0))
        };
        if rest(&columns) < LEAST_WHY {
            columns.time = 0;
        }
        columns.why = rest(&columns);
        columns
    }

    /// An object as it is called in this list: by what tells it from the others.
    pub fn called(&self, object: &ObjectRef) -> String {
        let namespace = object.namespace.as_ref().filter(|_| self.namespace);
        let name = namespace.map_or_else(|| object.name.clone(), |space| format!("{space}/{}", object.name));
        if self.kind { format!("{} {name}", object.gvk.kind) } else { name }
    }

    /// A reason as it fits: echoes of own writes give way first, then what the sign and the result say, too,
    /// then the front of a path, then the end of the text; never how often.
    pub fn why(&self, why: &str, times: usize) -> String {
        let times = if times > 1 { format!(" ×{times}") } else { String::new() };
        let room = self.why.saturating_sub(width(&times));
        let mut why = why.to_owned();
        let ways: [fn(&str) -> String; 4] = [without_echoes, without_retry, without_own_name, without_fronts];
        for shorter in ways {
            if width(&why) > room {
                why = shorter(&why);
            }
        }
        format!("{}{times}", cut_words(&why, room))
    }

    /// One row, cell by cell: time, object, why, result, wrote, took.
    pub fn row(&self, cells: &ReconcileCells) -> [String; 6] {
        let cell = |text: &str, size: usize| match size {
            0 => String::new(),
            size => format!("{} ", left(text, size - 1)),
        };
        let object = match self.object {
            0 => String::new(),
            // The ends of names tell them apart.
            size => cell(&cut_apart(&[cells.object.as_str()], size - 1).concat(), size),
        };
        [
            cell(&cells.time, self.time),
            object,
            left(&cells.why, self.why),
            format!(" {}", left(&cells.result, RESULT)),
            if self.wrote > 0 { format!(" {}", left(&cells.wrote, self.wrote - 1)) } else { String::new() },
            if self.took > 0 { format!(" {}", right(&cells.took, self.took - 1)) } else { String::new() },
        ]
    }
}

/// The reasons that are no echo of an own write, where there are any.
fn without_echoes(text: &str) -> String {
    match text.find(" · operator's own write") {
        Some(at) => text[..at].to_owned(),
        None => text.to_owned(),
    }
}

/// The reason `operator's own write: Deployment` for one with the name, too: mostly that of the owner.
fn without_own_name(text: &str) -> String {
    let rest = text.strip_prefix(OWN_WRITE).filter(|rest| rest.split(' ').count() == 2);
    let kind = rest.and_then(|rest| rest.split(' ').next());
    kind.map_or_else(|| text.to_owned(), |kind| format!("{OWN_WRITE}{kind}"))
}

fn without_retry(text: &str) -> String {
    text.strip_prefix("retry: ").unwrap_or(text).to_owned()
}

/// A text with the last part of each path alone: `size 2→3` for `.spec.size 2→3`.
fn without_fronts(text: &str) -> String {
    let word = |word: &str| match word.strip_prefix('.') {
        Some(path) if !path.contains('[') => path.rsplit('.').next().unwrap_or(path).to_owned(),
        Some(_) | None => word.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
