//! A field of a child that somebody else has changed, and that the operator leaves so.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{self, Error, Hint, Warning};
use opdev_facts::{Table, Wait};

pub(crate) static RULE: Rule = Rule {
    id: "drift-left",
    severity: Error,
    name: "drift is left",
    what: "Somebody else changed a field of a child, and the operator left it so. It writes the field when the custom \
           resource changes, and does not compare it with what is there. So the child is no longer what the custom \
           resource says.",
    when: "a reconcile ended well that had the change of the child among its causes, or for which opdev asked 10 s later. \
           It wrote nothing to the child, and 6 s later the value is still there. An error where the operator has \
           changed that very field before, and looked at the child again. A warning where it has not looked. A hint \
           where it has never changed that field, or where nothing but blanks or a line end differs.",
    never: "custom resources that are paused or unmanaged; labels, annotations and status; Secrets, Jobs and claims. \
            Changes by controllers of Kubernetes, and numbers of replicas beside an autoscaler. Nor fields that were added, \
            switches such as suspend, more than eight fields at once, or a workload whose pods are not ready.",
    fix: "Compare the field in each reconcile: controllerutil.CreateOrUpdate sets it in its function each time, and \
          server-side apply sends it. Watch the child, too: Owns(&Kind{}).",
    ends: Ends::WithChild,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: None,
    absent: Some(absent),
};

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in table.pending.iter().filter(|one| one.what == Wait::PutBack) {
        let (primary, child) = (one.primary.key(), one.about.key());
        let Some(track) = table.tracks.get(&(one.controller.clone(), primary.clone())) else { continue };
        let ended = track.has_come_to_its_end() && track.error.is_empty();
        if one.age(table).as_secs() < 6 || !ended || table.running.contains_key(&primary) {
            continue;
        }
        let looked = track.touched.get(&child) == Some(&track.count);
        let severity = |blank: bool, wrote_field: bool| -> FindingSeverity {
            match wrote_field {
                // To one that compares the meaning of a text, there is no difference.
                _ if blank => Hint,
                true if looked => Error,
                true => Warning,
                // The operator may never have set this field: then it is the API server's, or anybody's.
                false => Hint,
            }
        };
        let left = table.left_so(&primary, &child);
        let worst = left.into_iter().min_by_key(|one| severity(one.blank, one.wrote_field));
        let Some(drifted) = worst else { continue };
        let wrote = match (drifted.wrote_field, drifted.wrote_child) {
            (true, _) => "it has changed this field before",
            (_, true) => "it has changed other fields of it before",
            _ => "it has only made it",
        };
        let asked = if drifted.asked { " when opdev asked" } else { "" };
        let why = format!(
            "{} changed {} of {} from {} to {}, {} reconciled {}{asked} and left it so; {wrote}",
            drifted.by, drifted.path, one.about, drifted.old, drifted.new, one.controller, one.primary
        );
        let what = crate::rule::place(&one.about, &drifted.path);
        let told = Told::new(&RULE, &one.primary, table.now, one.reconcile).say(what, why);
        out.push(Told {
            severity: severity(drifted.blank, drifted.wrote_field),
            field: drifted.path,
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

    /// A Deployment with its writers.
    fn deployment(replicas: i64, by: &str, more: &Value) -> Value {
        let mut object = json!({"kind": "Deployment",
            "metadata": {"managedFields": [
                {"manager": "manager", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:template": {}}}},
                {"manager": by, "time": "2026-01-01T00:00:01Z",
                    "fieldsV1": {"f:spec": {"f:replicas": {}, "f:paused": {}, "f:strategy": {"f:type": {}}}}}]},
            "spec": {"replicas": replicas}, "status": {"readyReplicas": 9}});
        if let (Some(spec), Some(more)) = (object["spec"].as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        object
    }

    struct Case {
        /// The field that the operator has changed before.
        updated: Option<&'static str>,
        by: &'static str,
        /// The custom resource's spec.
        spec: Value,
        after: fn(&mut World),
    }

    fn case() -> Case {
        Case { updated: Some(".spec.replicas"), by: "kubectl-edit", spec: json!({}), after: heard }
    }

    fn web() -> ObjectRef {
        child("Deployment", "a-web")
    }

    fn event() -> Vec<Cause> {
        vec![woken(web(), WatchEvent::Modified, Some("kubectl-edit"), false)]
    }

    fn look(one: &mut Evidence) {
        let (objects, version) = (vec![web().key()], "1".to_owned());
        one.reads.push(ReadFact { objects, version, ..ReadFact::default() });
    }

    fn heard(world: &mut World) {
        world.reconcile(|one| {
            one.causes = event();
            look(one);
        });
    }

    fn run(case: &Case) -> (World, Vec<FindingSeverity>) {
        let mut world = embedded();
        world.reconcile(|one| {
            one.causes = by_user();
            one.writes = vec![WriteFact { owners: owned(true), ..create(&web(), 1) }];
        });
        world.seen(&cr("a"), shelf(1, json!({"spec": case.spec})));
        world.seen(&web(), deployment(1, "manager", &json!({"strategy": {"type": "RollingUpdate"}})));
        world.now += 10_000;
        if let Some(path) = case.updated {
            world.reconcile(|one| {
                one.causes = by_user();
                one.writes = vec![WriteFact { at: one.at, ..update(&web(), "", vec![field(path, 1, 2)]) }];
            });
        }
        world.seen(&web(), deployment(2, "manager", &json!({"strategy": {"type": "RollingUpdate"}})));
        world.now += 10_000;
        world.seen(&web(), deployment(5, case.by, &json!({"strategy": {"type": "RollingUpdate"}})));
        (case.after)(&mut world);
        world.wait(16);
        let told = world.rules().into_iter().filter(|(rule, _)| rule == "drift-left");
        let told = told.map(|(_, severity)| severity).collect();
        (world, told)
    }

    fn told(case: &Case) -> Vec<FindingSeverity> {
        run(case).1
    }

    #[test]
    fn a_change_by_somebody_else_that_is_left_is_told() {
        let (world, found) = run(&case());
        assert_eq!(found, [FindingSeverity::Error]);
        let why = &world.opened()[0].why;
        expect!["kubectl-edit changed .spec.replicas of Deployment default/a-web from 2 to 5, shelf reconciled Shelf default/a and left it so; it has changed this field before"]
        .assert_eq(why);
        let image = Some(".spec.template.spec.containers[name=web].image");
        let other = told(&Case { updated: image, ..case() });
        assert_eq!(other, [FindingSeverity::Hint], "some leave the number of replicas to others");
        assert_eq!(told(&Case { updated: None, ..case() }), [FindingSeverity::Hint], "made once");
        let early = |world: &mut World| world.reconcile(|one| one.causes = event());
        let early = told(&Case { after: early, ..case() });
        assert_eq!(early, [FindingSeverity::Warning], "it did not come to the child");
    }

    #[test]
    fn an_operator_that_has_not_heard_of_it_is_asked_once() {
        let answers = |world: &mut World| {
            world.wait(8);
            assert_eq!(asks(world), [""; 0]);
            world.wait(3);
            assert!(world.findings.is_undecided());
            assert_eq!(asks(world), ["shelf a"]);
            assert_eq!(asks(world), [""; 0], "once");
            world.reconcile(|one| {
                one.causes = check();
                look(one);
            });
        };
        assert_eq!(told(&Case { after: answers, ..case() }), [FindingSeverity::Error]);
        let puts_back = |world: &mut World| {
            world.wait(11);
            assert_eq!(asks(world).len(), 1);
            world.reconcile(|one| {
                one.causes = check();
                let back = FieldFact { other: "kubectl-edit".to_owned(), ..field(".spec.replicas", 5, 2) };
                one.writes = vec![WriteFact { at: one.at, ..update(&web(), "", vec![back]) }];
            });
        };
        assert!(told(&Case { after: puts_back, ..case() }).is_empty());
    }

    #[test]
    fn what_is_put_back_or_is_none_of_the_operators_business_is_not_told() {
        let back = |world: &mut World| {
            heard(world);
            world.wait(1);
            world
                .seen(&web(), deployment(2, "kubectl-edit", &json!({"strategy": {"type": "RollingUpdate"}})));
            heard(world);
        };
        assert!(told(&Case { after: back, ..case() }).is_empty(), "changed back by hand");
        let writes = |world: &mut World| {
            world.reconcile(|one| {
                one.causes = event();
                one.writes = vec![WriteFact { unchanged: true, ..update(&web(), "", vec![]) }];
            });
        };
        assert!(told(&Case { after: writes, ..case() }).is_empty(), "it does not own the field");
        let fails = |world: &mut World| {
            world.reconcile(|one| {
                one.causes = event();
                one.error = "no".to_owned();
            });
        };
        assert!(told(&Case { after: fails, ..case() }).is_empty(), "it will be tried again");
        let comes = |world: &mut World| {
            world.reconcile(|one| {
                one.causes = event();
                one.requeue = Some(Duration::from_secs(1));
            });
        };
        assert!(told(&Case { after: comes, ..case() }).is_empty(), "it goes on step by step");
        let unready = |world: &mut World| {
            let mut object = deployment(5, "kubectl-edit", &json!({"strategy": {"type": "RollingUpdate"}}));
            object["status"]["readyReplicas"] = 2.into();
            world.seen(&web(), object);
            heard(world);
        };
        assert!(told(&Case { after: unready, ..case() }).is_empty(), "it may wait for its pods");
        let paused = json!({"paused": true});
        assert!(told(&Case { spec: paused, ..case() }).is_empty());
        for by in ["horizontal-pod-autoscaler", "kube-controller-manager", "manager", "vpa-updater"] {
            assert!(told(&Case { by, ..case() }).is_empty(), "{by}");
        }
        let scaled = |world: &mut World| {
            world.seen(&child("HorizontalPodAutoscaler", "web"), json!({}));
            heard(world);
        };
        assert!(told(&Case { after: scaled, ..case() }).is_empty(), "an autoscaler is there");
    }
}
