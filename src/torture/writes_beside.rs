//! The writes of the operator undisturbed and disturbed, one beside the other. They begin a few before the first
//! one that differs. Pure.

use super::plan::{Disturbance, Write};
use opdev_event::words::file_name;

/// Equal writes that are told before the first one that differs.
const BEFORE: usize = 3;
/// Writes of each run that are told.
const MOST: usize = 40;

/// The two lists, each write in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WritesBeside {
    /// Writes of an undisturbed run.
    pub undisturbed: Vec<String>,
    /// Writes of the disturbed one, with a line where it was disturbed.
    pub disturbed: Vec<String>,
}

/// Puts the writes of both runs beside one another.
pub(super) fn beside(
    undisturbed: &[Write],
    disturbed: &[Write],
    (disturbance, how): (&Disturbance, &str),
) -> WritesBeside {
    let at = match disturbance {
        Disturbance::Crash(point)
        | Disturbance::Slow(point)
        | Disturbance::Lost(point)
        | Disturbance::Deleted(point)
        | Disturbance::Conflict(point) => Some(point),
        Disturbance::Restart(_)
        | Disturbance::Down(_)
        | Disturbance::Past(_)
        | Disturbance::BadPods(_)
        | Disturbance::Blind { .. } => None,
    };
    let is_hit = |write: &Write| at.is_some_and(|at| write.point == *at || write.call == *at);
    let hit = disturbed.iter().position(is_hit);
    let equal = undisturbed.iter().zip(disturbed).take_while(|(one, other)| one.point == other.point).count();
    let parted = equal.min(hit.unwrap_or(equal));
    // Runs may part long before, where the order of writes is a matter of chance.
    let near = hit.filter(|hit| hit - parted > MOST / 2).unwrap_or(parted);
    let from = near.saturating_sub(BEFORE);
    let lines = |writes: &[Write]| -> Vec<String> { writes.iter().skip(from).map(line).collect() };
    let (mut before, mut after) = (lines(undisturbed), lines(disturbed));
    let mark = format!("· {how}");
    // A disturbance between steps is told where the runs part.
    let place = hit.map_or_else(|| equal.saturating_sub(from), |at| at + 1 - from);
    after.insert(place.min(after.len()), mark);
    for lines in [&mut before, &mut after] {
        if lines.len() > MOST {
            let more = lines.len() - MOST;
            lines.truncate(MOST);
            lines.push(format!("and {more} more"));
        }
    }
    WritesBeside { undisturbed: before, disturbed: after }
}

fn line(write: &Write) -> String {
    match &write.place {
        // Both lists stand side by side, and the folder is told with the finding.
        Some(place) => format!("{}  {}", write.point.write, file_name(place)),
        None => write.point.write.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Point;

    fn write(text: &str) -> Write {
        let point = Point { write: text.to_owned(), nth: 1 };
        Write {
            call: point.clone(),
            point,
            verb: String::new(),
            resource: String::new(),
            changes: true,
            continues: false,
            step: 0,
            object: String::new(),
            place: None,
        }
    }

    #[test]
    fn lists_begin_shortly_before_the_kill_and_say_where_it_was() {
        let all = |texts: &str| texts.split(' ').map(write).collect::<Vec<_>>();
        let killed = Disturbance::Crash(Point { write: "f".to_owned(), nth: 1 });
        let told = beside(&all("a b c d e f g h"), &all("a b c d e f x"), (&killed, "killed after f"));
        assert_eq!(told.undisturbed, ["c", "d", "e", "f", "g", "h"]);
        assert_eq!(told.disturbed, ["c", "d", "e", "f", "· killed after f", "x"]);
    }

    #[test]
    fn a_restart_is_told_where_the_runs_part() {
        let told = beside(
            &[write("a"), write("b")],
            &[write("a")],
            (&Disturbance::Restart(0), "stopped and started"),
        );
        assert_eq!(told.undisturbed, ["a", "b"]);
        assert_eq!(told.disturbed, ["a", "· stopped and started"]);
        let far = Disturbance::Crash(Point { write: "59".to_owned(), nth: 1 });
        let of = |first: &str| {
            [write(first)].into_iter().chain((1..70).map(|at| write(&at.to_string()))).collect()
        };
        let (one, other): (Vec<Write>, Vec<Write>) = (of("a"), of("b"));
        let told = beside(&one, &other, (&far, "killed after 59"));
        assert_eq!(told.disturbed[..5], ["56", "57", "58", "59", "· killed after 59"]);
        let many: Vec<Write> = (0..60).map(|at| write(&at.to_string())).collect();
        let told = beside(&many, &[], (&Disturbance::Restart(0), "stopped and started"));
        assert_eq!(told.undisturbed.len(), MOST + 1);
        assert_eq!(told.undisturbed.last().map(String::as_str), Some("and 20 more"));
    }
}
