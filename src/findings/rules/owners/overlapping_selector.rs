//! Workloads of two custom resources that select each other's pods.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;
use opdev_facts::selectors::Selects;

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
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
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

#[cfg(test)]
mod tests {
    use crate::tests::*;
    use expect_test::expect;

    fn workload(name: &str, selector: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector, "template": {"metadata": {"labels": {"app": "shelf"}}}}})
    }

    #[test]
    fn two_custom_resources_whose_workloads_select_the_same_pods_are_told() {
        let run = |selectors: [Value; 2], primaries: [&str; 2], namespaces: [&str; 2]| {
            let mut world = World::new();
            let in_namespace = |at: usize| {
                let mut deployment = child("Deployment", ["a-web", "b-web"][at]);
                deployment.namespace = Some(namespaces[at].to_owned());
                deployment
            };
            for at in 0..2 {
                world.reconcile(|one| {
                    one.object = cr(primaries[at]);
                    one.writes =
                        vec![WriteFact { owners: owned(true), ..create(&in_namespace(at), 1 + at as i64) }];
                });
                world.seen(&in_namespace(at), workload(&in_namespace(at).name, &selectors[at]));
            }
            for primary in primaries {
                world.reconcile(|one| one.object = cr(primary));
            }
            let told = world.opened().into_iter().filter(|finding| finding.rule == "overlapping-selector");
            told.map(|finding| finding.why.clone()).collect::<Vec<_>>()
        };
        let same = || json!({"matchLabels": {"app": "shelf"}});
        let told = run([same(), same()], ["a", "b"], ["default", "default"]);
        assert_eq!(told.len(), 1, "{told:?}");
        expect!["Deployment default/b-web and Deployment default/a-web of Shelf default/a have the same selector, app=shelf: each selects the pods of the other"]
        .assert_eq(&told[0]);
        let own = json!({"matchLabels": {"app": "shelf", "name": "b"}});
        assert!(run([same(), own], ["a", "b"], ["default", "default"]).is_empty(), "a label of its own");
        assert!(run([same(), same()], ["a", "a"], ["default", "default"]).is_empty(), "one custom resource");
        assert!(run([same(), same()], ["a", "b"], ["default", "other"]).is_empty(), "two namespaces");
        let wide = || json!({"matchLabels": {"app": "shelf"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]});
        assert!(run([wide(), wide()], ["a", "b"], ["default", "default"]).is_empty(), "expressions say more");
    }
}
