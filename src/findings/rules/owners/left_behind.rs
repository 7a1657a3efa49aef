//! A child that the spec no longer asks for.

use crate::facts::Table;
use crate::facts::Wait;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Warning;

pub(crate) static RULE: Rule = Rule {
    id: "left-behind",
    severity: Warning,
    name: "left behind",
    what: "The spec of the custom resource was changed, and a child that earlier reconciles looked \
           after is touched no more, but still there.",
    when: "two reconciles after a new generation touched other children, not this one. It is still there \
           10 s later, untouched, and the newest reconcile wrote nothing.",
    never: "Jobs, claims, Secrets and pods; reconciles that failed. An operator that goes on step by \
           step, or stops early and asks to run again, may come to it later.",
    fix: "Delete what the spec no longer asks for.",
    storm: false,
    judge: None,
    absent: Some(absent),
};

const SPARED: [&str; 7] =
    ["Job", "PersistentVolumeClaim", "Pod", "Secret", "ReplicaSet", "CustomResourceDefinition", "Namespace"];

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in &table.pending {
        let Wait::Untouched { since } = one.what else { continue };
        let about = &one.about;
        if one.age(table).as_secs() < 10 || SPARED.contains(&about.gvk.kind.as_str()) {
            continue;
        }
        let there = table
            .makers
            .get(&about.key())
            .is_some_and(|maker| maker.seen && !maker.gone && maker.deleted.is_none());
        let track = table.tracks.get(&(one.controller.clone(), one.primary.key()));
        // A newer generation is judged by its own reconciles.
        let untouched = track.is_some_and(|track| {
            let last = track.touched.get(&about.key());
            track.renewed == since && last.is_some_and(|last| *last < since) && track.has_come_to_its_end()
        });
        if !there || !untouched {
            continue;
        }
        let why = format!(
            "{about} was made for {}, is touched no more since its spec has changed, and is still there",
            one.primary
        );
        let told =
            Told::new(&RULE, &one.primary, table.now, one.reconcile).say(&about.gvk.kind, why).about(about);
        out.push(Told { controller: one.controller.clone(), ..told });
    }
}
