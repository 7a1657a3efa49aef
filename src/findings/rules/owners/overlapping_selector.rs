//! Workloads of two custom resources that select each other's pods.

use crate::facts::Table;
use crate::facts::selectors::Selects;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "overlapping-selector",
    severity: Warning,
    name: "same selector twice",
    what: "The workloads of two custom resources have the same selector in one namespace. Each of them \
           selects the pods of the other, and so do Services and budgets with these labels.",
    when: "two custom resources of one kind have workloads of one kind with equal selectors in one \
           namespace.",
    never: "selectors with matchExpressions; workloads in different namespaces; several workloads of one \
           custom resource; workloads that somebody else made.",
    fix: "Add a label with the custom resource's name to the selector and to the labels of the pods. \
           The selector of a workload that is there cannot be changed: delete it and make it again.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let primary = evidence.object.key();
    let of = |key| table.makers.get(key).filter(|maker| !maker.gone && maker.deleted.is_none());
    for (key, selects) in &table.selectors {
        let Some(mine) = of(key).filter(|maker| maker.primary.key() == primary) else { continue };
        // The newer one is told: it took the selector of the one that was there.
        let other = table.selectors.iter().find_map(|(other, theirs)| {
            let maker = of(other).filter(|maker| maker.primary.key() != primary)?;
            let same_kind = maker.primary.gvk.kind == primary.kind && maker.controller == mine.controller;
            (is_same((key, selects), (other, theirs)) && same_kind && maker.at <= mine.at).then_some(maker)
        });
        let Some(other) = other else { continue };
        let why = format!(
            "{} and {} of {} have the same selector, {}: each selects the pods of the other",
            mine.object,
            other.object,
            other.primary,
            selects.text()
        );
        let told = Told::of(&RULE, evidence).say(&mine.object.gvk.kind, why).about(&mine.object);
        out.push(Told { place: mine.place.clone(), ..told });
    }
}

type Selecting<'a> = (&'a opdev_object::meta::ObjectKey, &'a Selects);

fn is_same((one, selects): Selecting<'_>, (other, theirs): Selecting<'_>) -> bool {
    one != other && (&one.kind, &one.namespace) == (&other.kind, &other.namespace) && selects == theirs
}
