//! Goroutines that each reconcile leaves behind.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;

/// Reconciles in a row.
const ROW: u32 = 20;
/// Longer than an idle connection lives.
const SECONDS: i64 = 100;

pub(crate) static RULE: Rule = Rule {
    id: "process-growth",
    severity: Warning,
    name: "process grows",
    what: "Each reconcile leaves goroutines behind, though it changes nothing: a client, a watch or a broadcaster that \
           is made anew and never stopped. Memory and connections grow until the program is killed.",
    when: "20 reconciles of a controller in a row, and 100 s. Each changed nothing, went well and left more goroutines than \
           there were before it; their number rose all the time. Where two controllers do so at once, it is one finding that names both.",
    never: "the first minute of a process; goroutines that end with their reconcile or within 100 s.",
    fix: "Make clients, watches and broadcasters once, in SetupWithManager, and not in Reconcile; give each goroutine a \
          context that ends.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(controller) = table.controllers.get(&evidence.controller) else { return };
    let growth = &controller.growth;
    let seconds = evidence.ended.duration_since(growth.since).as_secs();
    if growth.row < ROW || seconds < SECONDS || !growth.rises {
        return;
    }
    // Goroutines are counted for the process: of several controllers each may be the one.
    // One that reconciles no more leaves nothing behind.
    let is_idle = |last| evidence.ended.duration_since(last).as_secs() > SECONDS;
    let suspects = table
        .controllers
        .iter()
        .filter(|(_, other)| other.growth.row >= ROW / 2 && !is_idle(other.growth.last));
    let suspects: Vec<&str> = suspects.map(|(name, _)| name.as_str()).collect();
    if suspects.first() != Some(&evidence.controller.as_str()) {
        return;
    }
    let suspects = suspects.join(" or ");
    let why = format!(
        "{} reconciles of {suspects} in a row changed nothing and left goroutines behind: {} at first, {} after {seconds} s",
        growth.row, growth.first, evidence.goroutines
    );
    let told = Told { object: growth.object.clone(), ..Told::of(&RULE, evidence) };
    out.push(told.say(suspects, why));
}
