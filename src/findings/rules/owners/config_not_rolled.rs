//! Configuration that has changed, and pods that go on with the one of before.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Hint, Warning};
use opdev_facts::Table;
use opdev_facts::Wait;
use opdev_facts::templates::{ChangedBy, Takes};

pub(crate) static RULE: Rule = Rule {
    id: "config-not-rolled",
    severity: Warning,
    name: "pods keep the old configuration",
    what: "A ConfigMap or Secret has changed that the pods of a workload take, and the pod template did not change with \
           it. Variables and files mounted by subPath are read once, when a pod starts: the pods go on with the old \
           values until somebody restarts them.",
    when: "a reconcile changed a key of a ConfigMap that the pods of the custom resource take as a \
           variable. 10 s later neither the spec of the workload nor its pods had been touched. It is a hint \
           for Secrets. So it is for changes by others that led to a reconcile, or that one found when it read \
           again. It is a hint for files, too: the process may read them again, and an operator may hand the new values over by a call.",
    never: "the first 10 s of a workload; keys that no pod takes; Secrets in whole volumes. Workloads \
           without replicas, with updateStrategy OnDelete, or with a reloader in their annotations, \
           containers or arguments are left out. So are pods that go meanwhile, and reconcilers that fail \
           or come again first.",
    fix: "Put a hash of the configuration into an annotation of the pod template, spec.template.metadata.annotations: \
          then a change rolls the pods.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: None,
    absent: Some(absent),
};

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in &table.pending {
        let Wait::Rolled { workload, generation, takes, by, since } = &one.what else { continue };
        let age = one.age(table).as_secs();
        let Some(maker) = table.makers.get(workload).filter(|maker| !maker.gone && maker.deleted.is_none())
        else {
            continue;
        };
        let kept = table.templates.get(workload).is_some_and(|template| template.generation == *generation);
        let Some(track) = table.tracks.get(&(one.controller.clone(), one.primary.key())) else { continue };
        // An operator that comes again may do it step by step.
        let at_rest = track.error.is_empty()
            && (track.requeue.is_none() || track.count >= since + 3)
            && !table.running.contains_key(&one.primary.key());
        let deleted = workload.namespace.as_ref().and_then(|namespace| table.pods_gone.get(namespace));
        let restarted = deleted.is_some_and(|at| at.duration_since(one.at).as_secs() >= -5);
        if age < 10 || !kept || !at_rest || restarted {
            continue;
        }
        let own = *by == ChangedBy::Program;
        let sure = *takes == Takes::Once && own && one.about.gvk.kind == "ConfigMap";
        let how = match takes {
            Takes::Once => "take once, when they start",
            Takes::SubPath => "have by subPath, where nobody renews the file",
            Takes::Files => "have in files, which their process has to read again by itself",
        };
        let who = match by {
            ChangedBy::Program => "the reconcile changed",
            ChangedBy::Heard => "a reconcile came for a change of",
            ChangedBy::Found => "the reconcile read another value than the one before in",
        };
        let why = format!(
            "{who} {}, which the pods of {} {how}; 10 s later neither the pod template nor the pods have changed",
            one.about, maker.object
        );
        let told = Told::new(&RULE, &one.primary, table.now, one.reconcile).say(&one.about.gvk.kind, why);
        out.push(Told {
            severity: if sure { Warning } else { Hint },
            place: maker.place.clone(),
            field: workload.name.clone(),
            controller: one.controller.clone(),
            ..told.about(&one.about)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    struct Setting {
        config: &'static str,
        /// How the pod takes it.
        pod: Value,
        /// Annotations of the workload.
        annotations: Value,
    }

    fn env(kind: &str) -> Value {
        let field = if kind == "Secret" { "secretRef" } else { "configMapRef" };
        let mut from = serde_json::Map::new();
        from.insert(field.to_owned(), json!({"name": "web"}));
        json!({"containers": [{"name": "web", "envFrom": [from]}]})
    }

    fn workload(setting: &Setting, generation: i64) -> Value {
        json!({"metadata": {"generation": generation, "annotations": setting.annotations},
            "spec": {"replicas": 1, "template": {"spec": setting.pod}}})
    }

    fn run(setting: &Setting, after: impl FnOnce(&mut World, &ObjectRef)) -> Vec<FindingSeverity> {
        run_over(setting, "", after)
    }

    /// `other` is who had written the value that the operator writes over.
    fn run_over(
        setting: &Setting,
        other: &str,
        after: impl FnOnce(&mut World, &ObjectRef),
    ) -> Vec<FindingSeverity> {
        let mut world = World::new();
        let (deployment, config) = (child("Deployment", "web"), child(setting.config, "web"));
        world.reconcile(|one| {
            one.causes = by_user();
            let made = [&deployment, &config].map(|child| create(child, 1));
            one.writes = made.map(|write| WriteFact { owners: owned(true), ..write }).to_vec();
        });
        world.seen(&deployment, workload(setting, 1));
        world.now += 20_000;
        world.reconcile(|one| {
            one.causes = by_user();
            let mode = FieldFact { other: other.to_owned(), ..field(".data.mode", 1, 2) };
            one.writes = vec![WriteFact { at: one.at, ..update(&config, "", vec![mode]) }];
        });
        after(&mut world, &deployment);
        world.wait(12);
        let told = world.rules().into_iter().filter(|(rule, _)| rule == "config-not-rolled");
        told.map(|(_, severity)| severity).collect()
    }

    fn plain() -> Setting {
        Setting { config: "ConfigMap", pod: env("ConfigMap"), annotations: json!({}) }
    }

    #[test]
    fn a_config_that_changes_while_the_pod_template_stays_is_told() {
        assert_eq!(run(&plain(), |_, _| {}), [FindingSeverity::Warning]);
        let secret = Setting { config: "Secret", pod: env("Secret"), ..plain() };
        assert_eq!(run(&secret, |_, _| {}), [FindingSeverity::Hint]);
        let volume = json!({"volumes": [{"name": "c", "configMap": {"name": "web"}}],
            "containers": [{"name": "web", "volumeMounts": [{"name": "c"}]}]});
        let volume = Setting { pod: volume, ..plain() };
        assert_eq!(run(&volume, |_, _| {}), [FindingSeverity::Hint]);
    }

    #[test]
    fn a_value_of_somebody_else_that_is_put_back_is_what_the_pods_have() {
        assert_eq!(run_over(&plain(), "kubectl-edit", |_, _| {}), []);
    }

    #[test]
    fn a_config_of_somebody_else_that_is_read_again_with_another_value_is_a_hint() {
        // The values that two reconciles read, and by how much the second one is the program's own write.
        let run = |values: [(&str, u64); 2], own: bool| {
            let mut world = World::new();
            let (deployment, config) = (child("Deployment", "web"), child("ConfigMap", "web"));
            let read = |one: &mut Evidence, (key, value): (&str, u64)| {
                let values = vec![(key.to_owned(), value), (".data.same".to_owned(), 7)];
                one.configs = vec![ConfigFact { object: config.clone(), values }];
            };
            world.reconcile(|one| {
                one.causes = by_user();
                one.writes = vec![WriteFact { owners: owned(true), ..create(&deployment, 1) }];
                read(one, values[0]);
            });
            world.seen(&deployment, workload(&plain(), 1));
            world.now += 20_000;
            if own {
                world.reconcile(|one| {
                    one.object = cr("b");
                    let written = update(&config, "", vec![field(".data.mode", 1, 2)]);
                    one.writes = vec![WriteFact { at: one.at, ..written }];
                });
            }
            world.reconcile(|one| read(one, values[1]));
            world.wait(12);
            let told = world.rules().into_iter().filter(|(rule, _)| rule == "config-not-rolled");
            told.map(|(_, severity)| severity).collect::<Vec<_>>()
        };
        let mode = |value: u64| (".data.mode", value);
        assert_eq!(run([mode(1), mode(2)], false), [FindingSeverity::Hint]);
        assert!(run([mode(1), mode(1)], false).is_empty(), "its labels have changed");
        assert!(run([mode(1), (".data.new", 2)], false).is_empty(), "a key more");
        assert!(run([mode(1), mode(2)], true).is_empty(), "the program has written it for another one");
    }

    #[test]
    fn pods_that_are_rolled_or_reload_are_not_told() {
        let rolled = |world: &mut World, deployment: &ObjectRef| {
            world.now += 1_000;
            world.seen(deployment, workload(&plain(), 2));
        };
        assert!(run(&plain(), rolled).is_empty(), "the next reconcile changed the template");
        let deletes = |world: &mut World, _: &ObjectRef| world.gone(&child("Pod", "web-0"));
        assert!(run(&plain(), deletes).is_empty(), "it restarts the pods itself");
        let fails = |world: &mut World, _: &ObjectRef| world.reconcile(|one| one.error = "no".to_owned());
        assert!(run(&plain(), fails).is_empty(), "it is not done yet");
        let comes = |world: &mut World, _: &ObjectRef| {
            world.reconcile(|one| one.requeue = Some(Duration::from_secs(30)));
        };
        assert!(run(&plain(), comes).is_empty(), "it comes again");
        let reloader = Setting { annotations: json!({"reloader.stakater.com/auto": "true"}), ..plain() };
        assert!(run(&reloader, |_, _| {}).is_empty(), "something else rolls it");
        let other = Setting { pod: json!({"containers": [{"name": "web"}]}), ..plain() };
        assert!(run(&other, |_, _| {}).is_empty(), "no pod takes it");
    }
}
