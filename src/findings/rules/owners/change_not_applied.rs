//! A changed field of a custom resource that does not reach its children.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Hint, Warning};
use opdev_facts::Table;
use opdev_facts::Wait;
use serde_json::Value;

pub(crate) static RULE: Rule = Rule {
    id: "change-not-applied",
    severity: Warning,
    name: "change does not reach the child",
    what: "A field of the custom resource was changed, and a child goes on with the old value. The operator uses \
           the field when it makes the child, and does not compare it when it updates the child.",
    when: "6 s after a good reconcile that has read the new spec and wrote no child, a child still has the old \
           value. The value stands under the same name, or as a text of its own. The child has to be a \
           Deployment, StatefulSet, DaemonSet, Service, ConfigMap, CronJob, Ingress, HorizontalPodAutoscaler or \
           PodDisruptionBudget of this controller. Where another child has got the new value, a \
           text of its own counts, and as a hint a number from 1000 on. A hint for whole fields of pods, such as \
           tolerations, that were set, changed or taken away and that no pod follows. A hint, too, for an entry that \
           was added to labels, annotations or variables, where the child has all others of them.",
    never: "custom resources that are paused or unmanaged; numbers of replicas beside an autoscaler; \
            claims and Jobs. Names that stand everywhere, such as type, do not count, nor do more than eight \
            fields at once. An operator that goes on step by step may come to it later. Where another child has the \
            new value, nothing is told of an old one that also stands elsewhere in the spec.",
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
        let Wait::Applied { field, place, changed_at, generation, reached } = &one.what else { continue };
        if one.age(table).as_secs() < 6 {
            continue;
        }
        let (primary, child) = (one.primary.key(), one.about.key());
        let track = table.tracks.get(&(one.controller.clone(), primary.clone()));
        let ended = track.is_some_and(|track| track.has_come_to_its_end() && track.error.is_empty());
        let change = (*changed_at, *generation);
        let owner = (one.controller.as_str(), &primary);
        if !ended || !table.is_unapplied(owner, &child, field, change, reached.as_deref()) {
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
        // A number may be the same in two children by chance.
        let severity = if reached.is_some() && !field.old.is_string() { Hint } else { severity };
        let why = match reached {
            Some(there) => format!(
                "{} of {} was {what}, {} wrote the new value to {there}, and {} {still}",
                field.path, one.primary, one.controller, one.about
            ),
            None => format!(
                "{} of {} was {what}, {} reconciled it and ended well, and {} {still}",
                field.path, one.primary, one.controller, one.about
            ),
        };
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
    use expect_test::expect;

    fn deployment(replicas: i64, image: &str) -> Value {
        json!({"kind": "Deployment", "spec": {"replicas": replicas,
            "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
            "status": {"readyReplicas": replicas}})
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
        expect![".spec.image of Shelf default/a was changed from nginx:1.25 to nginx:1.27, shelf reconciled it and ended well, and Deployment default/a-web still has nginx:1.25 at .spec.template.spec.containers[0].image"]
        .assert_eq(&found[0].1);
        let version = told(&json!({"version": "1.25"}), &json!({"version": "1.27"}), reconciled);
        assert_eq!(version.len(), 1, "the tag of an image: {version:?}");
        let size = told(&json!({"web": {"size": 2}}), &json!({"web": {"size": 3}}), reconciled);
        assert_eq!(size[0].0, ".spec.web.size", "a number of pods has many names");
        let once = told(&old, &new, |world| (0..3).for_each(|_| reconciled(world)));
        assert_eq!(once.len(), 1, "{once:?}");
    }

    #[test]
    fn one_that_panics_has_not_ended_well() {
        let (old, new) = (json!({"image": "nginx:1.25"}), json!({"image": "nginx:1.27"}));
        let found = told(&old, &new, |world| {
            reconciled(world);
            world.reconcile(|one| {
                (one.generation, one.causes) = (Some(2), own());
                one.panic = "invalid memory address".to_owned();
            });
        });
        assert!(found.is_empty(), "{found:?}");
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
        expect![".spec.tolerations of Shelf default/a was set, shelf reconciled it and ended well, and Deployment default/a-web has none at .spec.template.spec"]
        .assert_eq(&found[0].1);
        let empty = told(&json!({"tolerations": []}), &json!({"tolerations": tolerations}), reconciled);
        assert_eq!(empty.len(), 1, "an empty list is none: {empty:?}");
        expect![".spec.tolerations of Shelf default/a was set, shelf reconciled it and ended well, and Deployment default/a-web has none at .spec.template.spec"]
        .assert_eq(&empty[0].1);
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

    struct Half {
        spec: [Value; 2],
        /// The change of the first child, as it is shown.
        shown: [&'static str; 2],
        path: &'static str,
        second: ObjectRef,
        content: Value,
        looks: bool,
    }

    fn images() -> Half {
        Half {
            spec: [json!({"image": "nginx:1.25"}), json!({"image": "nginx:1.27"})],
            shown: ["nginx:1.25", "nginx:1.27"],
            path: ".spec.template.spec.containers[name=web].image",
            second: child("Deployment", "a-worker"),
            content: deployment(2, "nginx:1.25"),
            looks: true,
        }
    }

    /// The first of two children gets the new value, and the second one has `content`.
    fn half(case: &Half) -> Vec<(FindingSeverity, String)> {
        let mut world = World::new();
        let web = child("Deployment", "a-web");
        world.reconcile(|one| {
            one.generation = Some(1);
            let made = [&web, &case.second].map(|one| create(one, 1));
            one.writes = made.map(|write| WriteFact { owners: owned(true), ..write }).to_vec();
        });
        world.seen(&cr("a"), spec(1, case.spec[0].clone()));
        world.seen(&web, deployment(2, case.shown[0]));
        world.seen(&case.second, case.content.clone());
        world.wait(20);
        world.seen(&cr("a"), spec(2, case.spec[1].clone()));
        world.reconcile(|one| {
            (one.generation, one.causes) = (Some(2), by_user());
            let shown = (case.shown[0].to_owned(), case.shown[1].to_owned());
            let fields = vec![FieldFact { shown, ..field(case.path, 1, 2) }];
            one.writes = vec![WriteFact { at: one.at, ..update(&web, "", fields) }];
        });
        world.seen(&web, deployment(2, case.shown[1]));
        world.reconcile(|one| {
            (one.generation, one.causes) = (Some(2), own());
            let (objects, version) = (vec![case.second.key()], "1".to_owned());
            one.reads.extend(case.looks.then(|| ReadFact { objects, version, ..ReadFact::default() }));
        });
        world.wait(14);
        let told = world.opened().into_iter().filter(|finding| finding.rule == "change-not-applied");
        told.map(|finding| (finding.severity, finding.why.clone())).collect()
    }

    #[test]
    fn a_child_that_is_left_out_while_another_one_gets_the_value_is_told() {
        let found = half(&images());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, FindingSeverity::Warning);
        assert!(
            found[0].1.contains("wrote the new value to Deployment") && found[0].1.contains("a-worker"),
            "{found:?}"
        );
        let port = Half {
            spec: [json!({"port": 8080}), json!({"port": 9090})],
            shown: ["8080", "9090"],
            path: ".spec.template.spec.containers[name=web].ports[containerPort=8080].containerPort",
            second: child("Service", "a"),
            content: json!({"kind": "Service", "spec": {"ports": [{"port": 8080}]}}),
            looks: true,
        };
        let told: Vec<FindingSeverity> = half(&port).into_iter().map(|(severity, _)| severity).collect();
        assert_eq!(told, [FindingSeverity::Hint], "a number may be the same by chance");
    }

    #[test]
    fn one_that_waits_for_the_pods_of_a_child_goes_on_later() {
        let mut waits = images();
        waits.content["status"]["readyReplicas"] = 1.into();
        assert_eq!(half(&waits), []);
    }

    #[test]
    fn a_child_with_the_same_value_for_reasons_of_its_own_is_not_told() {
        let worker = json!({"image": "nginx:1.27", "worker": {"image": "nginx:1.25"}});
        let other = Half {
            spec: [json!({"image": "nginx:1.25", "worker": {"image": "nginx:1.25"}}), worker],
            ..images()
        };
        assert!(half(&other).is_empty(), "another field means it");
        assert!(half(&Half { looks: false, ..images() }).is_empty(), "it comes to it later");
        let record = json!({"kind": "ConfigMap", "data": {"first": "nginx:1.25"}});
        let record = Half { second: child("ConfigMap", "a-first"), content: record, ..images() };
        assert!(half(&record).is_empty(), "a note of before");
        let small = Half {
            spec: [json!({"replicas": 2}), json!({"replicas": 3})],
            shown: ["2", "3"],
            path: ".spec.replicas",
            ..images()
        };
        assert!(half(&small).is_empty(), "two children with two replicas");
    }

    #[test]
    fn an_entry_that_was_added_to_a_map_and_is_in_no_child_is_a_hint() {
        let labels = |labels: Value| json!({ "podLabels": labels });
        let run = |child: Value, new: Value| {
            let after = |world: &mut World| {
                world.seen(&crate::tests::child("Deployment", "a-web"), child.clone());
                reconciled(world);
            };
            told(&labels(json!({"team": "a", "tier": "b"})), &labels(new), after)
        };
        let pods = |labels: Value| json!({"kind": "Deployment", "spec": {"template": {"metadata": {"labels": labels}}}});
        let more = || json!({"team": "a", "tier": "b", "cost": "c"});
        let found = run(pods(json!({"team": "a", "tier": "b", "app": "a"})), more());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, ".spec.podLabels.cost");
        expect![".spec.podLabels.cost of Shelf default/a was set, shelf reconciled it and ended well, and Deployment default/a-web has none at .spec.template.metadata.labels"]
        .assert_eq(&found[0].1);
        assert!(run(pods(more()), more()).is_empty(), "it is there");
        assert!(run(pods(json!({"team": "a", "app": "a"})), more()).is_empty(), "labels are chosen");
        let selector =
            json!({"kind": "Deployment", "spec": {"selector": {"matchLabels": {"team": "a", "tier": "b"}}}});
        assert!(run(selector, more()).is_empty(), "a selector cannot be changed");
        let env = |env: Value| json!({ "extraEnv": env });
        let pods = |names: &[&str]| {
            let list: Vec<Value> = names.iter().map(|name| json!({"name": name, "value": "1"})).collect();
            json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"name": "web", "env": list}]}}}})
        };
        let one = |name: &str| json!({"name": name, "value": "1"});
        let run = |there: &[&str]| {
            let object = pods(there);
            let after = |world: &mut World| {
                world.seen(&crate::tests::child("Deployment", "a-web"), object.clone());
                reconciled(world);
            };
            told(&env(json!([one("A")])), &env(json!([one("A"), one("B")])), after).len()
        };
        assert_eq!((run(&["A", "HOME"]), run(&["A", "B"]), run(&["HOME"])), (1, 0, 0));
    }

    #[test]
    fn an_autoscaler_and_a_budget_are_changed_in_place_as_well() {
        let run = |kind: &str, name: &str| {
            let mut world = World::new();
            let child = child(kind, "a");
            world.reconcile(|one| {
                one.writes = vec![WriteFact { owners: owned(true), ..create(&child, 1) }];
            });
            let mut old = json!({});
            old[name] = 2.into();
            world.seen(&cr("a"), spec(1, old.clone()));
            world.seen(&child, json!({"kind": kind, "spec": old}));
            world.wait(20);
            let mut new = json!({});
            new[name] = 4.into();
            world.seen(&cr("a"), spec(2, new));
            reconciled(&mut world);
            world.wait(14);
            world.rules().into_iter().filter(|(rule, _)| rule == "change-not-applied").count()
        };
        assert_eq!(run("HorizontalPodAutoscaler", "minReplicas"), 1);
        assert_eq!(run("PodDisruptionBudget", "minAvailable"), 1);
        assert_eq!(run("Ingress", "port"), 1);
        assert_eq!(run("HorizontalPodAutoscaler", "replicas"), 0, "its own");
        assert_eq!(run("Job", "parallelism"), 0, "it stays as it was made");
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
