//! A changed field of a custom resource that does not reach its children.

use crate::facts::Table;
use crate::facts::Wait;
use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Hint, Warning};
use serde_json::Value;

pub(crate) static RULE: Rule = Rule {
    id: "change-not-applied",
    severity: Warning,
    name: "change does not reach the child",
    what: "A field of the custom resource was changed, and a child goes on with the old value. The operator uses \
           the field when it makes the child, and does not compare it when it updates the child.",
    when: "6 s after a good reconcile that has read the new spec and wrote no child, a child still has the old \
           value. The value stands under the same name, or as a text of its own. The child has to be a \
           Deployment, StatefulSet, DaemonSet, Service, ConfigMap or CronJob of this controller. A hint for whole \
           fields of pods, such as tolerations, that were set, changed or taken away and that no pod follows.",
    never: "custom resources that are paused or unmanaged; numbers of replicas beside an autoscaler; \
            claims and Jobs. Names that stand everywhere, such as type, do not count, nor do more than eight \
            fields at once. An operator that goes on step by step may come to it later.",
    fix: "Compare the field when the child is updated: controllerutil.CreateOrUpdate sets it in its function each \
          time.",
    ends: Ends::WithChild,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::InFullView,
    judge: None,
    absent: Some(absent),
};

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in &table.pending {
        let Wait::Applied { field, place, changed_at, generation } = &one.what else { continue };
        if one.age(table).as_secs() < 6 {
            continue;
        }
        let (primary, child) = (one.primary.key(), one.about.key());
        let track = table.tracks.get(&(one.controller.clone(), primary.clone()));
        let ended = track.is_some_and(|track| track.has_come_to_its_end() && track.error.is_empty());
        if !ended || !table.is_unapplied(&primary, &child, field, (*changed_at, *generation)) {
            continue;
        }
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let (old, new) = (text(&field.old), text(&field.new));
        let (severity, what, still) = match (&field.old, &field.new) {
            (Value::Null, _) => (Hint, "set".to_owned(), format!("has none at {place}")),
            (_, Value::Null) => (Hint, "taken away".to_owned(), format!("still has it at {place}")),
            _ if field.is_scalar() => {
                (Warning, format!("changed from {old} to {new}"), format!("still has {old} at {place}"))
            }
            _ => (Hint, "changed".to_owned(), format!("still has the old one at {place}")),
        };
        let why = format!(
            "{} of {} was {what}, {} reconciled it and ended well, and {} {still}",
            field.path, one.primary, one.controller, one.about
        );
        let told = Told::new(&RULE, &one.primary, table.now, one.reconcile).say(&field.path, why);
        out.push(Told {
            severity,
            field: field.path.clone(),
            controller: one.controller.clone(),
            place: table.makers.get(&child).and_then(|maker| maker.place.clone()),
            ..told.about(&one.about)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    fn deployment(replicas: i64, image: &str) -> Value {
        json!({"kind": "Deployment", "spec": {"replicas": replicas,
            "template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})
    }

    fn spec(generation: i64, spec: Value) -> Value {
        let mut object = shelf(generation, json!({}));
        object["spec"] = spec;
        object
    }

    /// A Deployment is made, the spec is changed, and `after` says what follows; the findings of this rule.
    fn told(old: &Value, new: &Value, after: impl Fn(&mut World)) -> Vec<(String, String)> {
        let mut world = World::new();
        let web = child("Deployment", "a-web");
        world.reconcile(|one| {
            one.generation = Some(1);
            one.writes = vec![WriteFact { owners: owned(true), ..create(&child("Deployment", "a-web"), 1) }];
        });
        world.seen(&cr("a"), spec(1, old.clone()));
        world.seen(&web, deployment(2, "nginx:1.25"));
        world.wait(20);
        world.seen(&cr("a"), spec(2, new.clone()));
        after(&mut world);
        world.wait(14);
        let told = world.opened().into_iter().filter(|finding| finding.rule == "change-not-applied");
        told.map(|finding| (finding.field.clone(), finding.why.clone())).collect()
    }

    fn reconciled(world: &mut World) {
        world.reconcile(|one| {
            one.generation = Some(2);
            one.causes = by_user();
        });
    }

    #[test]
    fn a_child_that_goes_on_with_the_old_value_is_told() {
        let (old, new) = (json!({"image": "nginx:1.25"}), json!({"image": "nginx:1.27"}));
        let found = told(&old, &new, reconciled);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, ".spec.image");
        assert!(
            found[0].1.contains("still has nginx:1.25 at .spec.template.spec.containers[0].image"),
            "{found:?}"
        );
        let version = told(&json!({"version": "1.25"}), &json!({"version": "1.27"}), reconciled);
        assert_eq!(version.len(), 1, "the tag of an image: {version:?}");
        let size = told(&json!({"web": {"size": 2}}), &json!({"web": {"size": 3}}), reconciled);
        assert_eq!(size[0].0, ".spec.web.size", "a number of pods has many names");
        let once = told(&old, &new, |world| (0..3).for_each(|_| reconciled(world)));
        assert_eq!(once.len(), 1, "{once:?}");
    }

    #[test]
    fn what_reaches_the_child_or_is_not_in_it_is_not_told() {
        let (old, new) = (json!({"replicas": 2, "port": 80}), json!({"replicas": 3, "port": 80}));
        let applied = |world: &mut World| {
            world.reconcile(|one| {
                one.generation = Some(2);
                one.writes =
                    vec![update(&child("Deployment", "a-web"), "", vec![field(".spec.replicas", 2, 3)])];
            });
            world.seen(&child("Deployment", "a-web"), deployment(3, "nginx:1.25"));
            reconciled(world);
        };
        assert!(told(&old, &new, applied).is_empty());
        assert!(
            told(&old, &json!({"replicas": 2, "port": 81}), reconciled).is_empty(),
            "no child has the port"
        );
        assert!(
            told(&old, &json!({"replicas": 3, "port": 80, "paused": true}), reconciled).is_empty(),
            "paused"
        );
        assert!(
            told(&json!({"replicas": 4}), &json!({"replicas": 2}), reconciled).is_empty(),
            "the new one is there"
        );
        let failed = |world: &mut World| {
            world.reconcile(|one| {
                one.generation = Some(2);
                one.error = "no such image".to_owned();
            });
        };
        assert!(told(&old, &new, failed).is_empty(), "it will be tried again");
        let stale = |world: &mut World| world.reconcile(|one| one.generation = Some(1));
        assert!(told(&old, &new, stale).is_empty(), "the reconcile has read the old spec");
        // One step in each reconcile: first the Service, then the Deployment.
        let steps = |world: &mut World| {
            world.reconcile(|one| {
                one.generation = Some(2);
                one.requeue = Some(Duration::from_secs(1));
            });
            world.wait(2);
            applied(world);
        };
        assert!(told(&old, &new, steps).is_empty());
    }

    #[test]
    fn a_field_of_pods_that_reaches_no_pod_is_a_hint() {
        let tolerations = json!([{"key": "spot", "operator": "Exists"}]);
        let found = told(&json!({}), &json!({"tolerations": tolerations}), reconciled);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].1.contains("was set") && found[0].1.contains("has none at .spec.template.spec"),
            "{found:?}"
        );
        let empty = told(&json!({"tolerations": []}), &json!({"tolerations": tolerations}), reconciled);
        assert!(empty.len() == 1 && empty[0].1.contains("was set"), "an empty list is none: {empty:?}");
        let name = |name: &str| json!({"web": {"resources": {"limits": {"cpu": name}}}});
        let found = told(&name("1"), &name("2"), reconciled);
        assert!(found.is_empty(), "no container had the old one: {found:?}");
        let taken = told(&json!({"tolerations": tolerations}), &json!({}), reconciled);
        assert!(taken.is_empty(), "the pods never had them: {taken:?}");
        let empty = told(&json!({}), &json!({"tolerations": [], "affinity": {}}), reconciled);
        assert!(empty.is_empty(), "there is nothing to write: {empty:?}");
        let extra = told(&json!({}), &json!({"extraArgs": ["-v"]}), reconciled);
        assert!(extra.is_empty(), "no field of pods: {extra:?}");
    }

    #[test]
    fn replicas_beside_an_autoscaler_are_its_own() {
        let mut world = World::new();
        let (web, scaler) = (child("Deployment", "a-web"), child("HorizontalPodAutoscaler", "a-web"));
        world.reconcile(|one| {
            one.writes =
                [&web, &scaler].map(|one| WriteFact { owners: owned(true), ..create(one, 1) }).to_vec();
        });
        world.seen(&cr("a"), spec(1, json!({"replicas": 2})));
        world.seen(&web, deployment(2, "nginx"));
        world.wait(20);
        world.seen(&cr("a"), spec(2, json!({"replicas": 3})));
        reconciled(&mut world);
        world.wait(14);
        assert!(!world.opened().iter().any(|finding| finding.rule == "change-not-applied"));
    }
}
