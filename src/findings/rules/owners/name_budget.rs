//! A name that leaves little room for the name of the custom resource.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Hint;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "name-budget",
    severity: Hint,
    name: "short names only",
    what: "The name of a child is the name of the custom resource and a constant part. A long name of a \
           custom resource makes a name that the API server refuses, or a label that is too long.",
    when: "two custom resources have such children, and the longest name that works has fewer than 30 \
           characters.",
    never: "names that are shortened or hashed.",
    fix: "Shorten the name, or hash what is too long, or limit the name of the custom resource with a \
           CEL rule in the CRD.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(controller) = table.controllers.get(&evidence.controller) else { return };
    for write in evidence.writes.iter().filter(|write| write.created) {
        let kind = write.object.gvk.kind.as_str();
        let limit = match kind {
            "StatefulSet" | "CronJob" => 52,
            "Service" => 63,
            _ => continue,
        };
        let Some((rest, names)) = controller.rests.get(kind).filter(|(_, names)| names.len() >= 2) else {
            continue;
        };
        let longest = limit - rest.len().min(limit);
        if longest >= 30 || names.is_empty() {
            continue;
        }
        let why = format!(
            "each {kind} is called like its {} and {rest}: a name of more than {longest} characters does not work",
            evidence.object.gvk.kind
        );
        let told = Told::of(&RULE, evidence).say(kind, why);
        out.push(Told { field: kind.to_owned(), ..told });
    }
}
