//! Samples under names that the API server takes for a custom resource, and perhaps not for its children.
//! Pure.

use super::checks::Faults;
use crate::judge::{Difference, Outcome, Rule};
use crate::plan::Level;
use crate::run::BYSTANDER;
use opdev_normal::{Snapshot, id};
use opdev_object::meta;
use opdev_steps::scenario::{NAMES, Naming, Sample, Scenario, Step, set};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A sample under other names: first those that have to work, then those that seldom do.
pub(super) fn scenarios(sample: &Sample, made: &[Arc<Value>], level: Level) -> Vec<Scenario> {
    if !sample.is_namespaced() {
        return Vec::new();
    }
    // Only a Service is particular about its first letter.
    let digit = made.iter().any(|object| object["kind"] == "Service").then_some(Naming::Digit);
    let first: Vec<Naming> = [Some(Naming::Long), digit].into_iter().flatten().collect();
    let hints = if level == Level::Quick { Vec::new() } else { vec![Naming::Longest, Naming::Dot] };
    let named = |(name, all): (String, Vec<Naming>)| {
        let steps: Vec<Step> = all.into_iter().filter_map(|naming| step(sample, naming)).collect();
        (!steps.is_empty()).then(|| Scenario { name, sample: sample.clone(), steps })
    };
    [(NAMES.to_owned(), first), (format!("{NAMES} that seldom work"), hints)]
        .into_iter()
        .filter_map(named)
        .collect()
}

/// The sample under another name; nothing where it has such a name already.
fn step(sample: &Sample, naming: Naming) -> Option<Step> {
    let moved = sample.moved(naming.namespace(), None);
    let old = moved.objects.first().and_then(meta::name)?.to_owned();
    let new = name(&old, naming)?;
    let alone = moved.objects.len() == 1;
    let renamed = |mut object: Value| {
        if !alone {
            replace(&mut object, &old, &new);
        } else {
            set(&mut object, "name", &new);
        }
        object
    };
    Some(Step::Named {
        naming,
        others: moved.others,
        objects: moved.objects.into_iter().map(renamed).collect(),
    })
}

/// Another name that begins like the old one.
fn name(old: &str, naming: Naming) -> Option<String> {
    // Vowels: a name that ends with others may be a random one.
    let filled = |length: usize| {
        (old.len() < length - 2).then(|| format!("{old}-{}", "a".repeat(length - old.len() - 1)))
    };
    match naming {
        Naming::Long => filled(52),
        Naming::Longest => filled(63),
        Naming::Digit => {
            (!old.starts_with(|letter: char| letter.is_ascii_digit())).then(|| format!("1{old}"))
        }
        Naming::Dot => (!old.contains('.')).then(|| format!("{old}.a")),
    }
}

/// Replaces a name wherever it stands alone: objects of one sample name each other.
fn replace(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text == old => new.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, old, new)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, old, new)),
        _ => {}
    }
}

/// Kinds of names for which the operator fails, or makes less than for the untouched instance, which has
/// the plain one.
pub(super) fn faults(steps: &[Step], outcome: &Outcome) -> Faults {
    let mut faults = Faults::default();
    // One that cannot serve the plain name either says nothing of the others.
    if outcome.troubles.iter().any(|trouble| trouble.contains(&format!("{BYSTANDER}/"))) {
        return faults;
    }
    let (plain, all) = (counts(&outcome.bystander.0), outcome.ends.last());
    let mut told: Vec<&String> = Vec::new();
    for step in steps {
        let Step::Named { naming, objects, .. } = step else { continue };
        let (Some(all), Some(first)) = (all, objects.first()) else { continue };
        // The API server did not take it.
        if !all.contains_key(&id(first)) {
            continue;
        }
        let list = if naming.is_hint() { &mut faults.hints } else { &mut faults.found };
        let namespace = naming.namespace();
        let about = format!("{} with {}", first["kind"].as_str().unwrap_or_default(), naming.words());
        let new = |path: &str, undisturbed: &str, disturbed: String| Difference {
            path: path.to_owned(),
            undisturbed: undisturbed.to_owned(),
            disturbed,
            ..Difference::plain(Rule::Name, &about)
        };
        let own: Snapshot = all
            .iter()
            .filter(|(id, _)| is_in(id, namespace))
            .map(|(id, of)| (id.clone(), of.clone()))
            .collect();
        let here = counts(&own);
        let fewer = plain.iter().filter_map(|(kind, count)| {
            let now = here.get(kind).copied().unwrap_or_default();
            (now < *count).then(|| new(kind, &count.to_string(), now.to_string()))
        });
        let fewer: Vec<Difference> = fewer.collect();
        let failing = outcome.troubles.iter().find(|trouble| trouble.contains(&format!("{namespace}/")));
        told.extend(failing);
        let why = failing.cloned().or_else(|| {
            let refused = outcome.refused.get(namespace).filter(|_| !fewer.is_empty())?;
            Some(format!("the API server said: {refused}"))
        });
        list.extend(why.map(|why| new("", "", why)));
        list.extend(fewer);
    }
    // A program that ended names nobody.
    let hints = steps.iter().all(|step| matches!(step, Step::Named { naming, .. } if naming.is_hint()));
    let list = if hints { &mut faults.hints } else { &mut faults.found };
    let others = outcome.troubles.iter().filter(|trouble| !told.contains(trouble));
    list.extend(others.map(|trouble| Difference::plain(Rule::Trouble, trouble)));
    faults
}

/// Returns true if an object is in a namespace, by its name in words.
fn is_in(id: &str, namespace: &str) -> bool {
    id.split_once(' ').and_then(|(_, name)| name.split_once('/')).is_some_and(|(own, _)| own == namespace)
}

/// The number of objects of each kind.
fn counts(all: &Snapshot) -> BTreeMap<&str, usize> {
    let mut found = BTreeMap::new();
    for kind in all.keys().filter_map(|id| id.split(' ').next()) {
        *found.entry(kind).or_default() += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::FAIL;
    use serde_json::json;

    fn sample() -> Sample {
        let object =
            json!({"apiVersion": "g/v1", "kind": "Db", "metadata": {"name": "db", "namespace": "x"}});
        Sample { path: "db.yaml".to_owned(), others: Vec::new(), objects: vec![object] }
    }

    #[test]
    fn names_have_their_length_and_a_digit_is_for_services() {
        assert_eq!(name("db", Naming::Long).unwrap().len(), 52);
        assert_eq!(name("db", Naming::Longest).unwrap().len(), 63);
        assert_eq!([name("1db", Naming::Digit), name(&"a".repeat(51), Naming::Long)], [None, None]);
        let service = [Arc::new(json!({"kind": "Service"}))];
        let steps = |made: &[Arc<Value>], level| {
            let all = scenarios(&sample(), made, level);
            all.iter().map(|one| one.steps.iter().map(Step::words).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(steps(&[], Level::Quick), [["apply Db with a name of 52 letters"]]);
        assert_eq!(steps(&service, Level::Quick)[0].len(), 2);
        assert_eq!(
            steps(&[], Level::Normal)[1],
            ["apply Db with a name of 63 letters", "apply Db with a name with a dot"]
        );
    }

    #[test]
    fn objects_of_one_sample_still_name_each_other() {
        let mut two = sample();
        two.objects.push(
            json!({"kind": "Backup", "metadata": {"name": "daily", "namespace": "x"}, "spec": {"db": "db"}}),
        );
        let Some(Step::Named { objects, .. }) = step(&two, Naming::Dot) else { panic!() };
        assert_eq!([&objects[0]["metadata"]["name"], &objects[1]["spec"]["db"]], ["db.a", "db.a"]);
        assert_eq!(objects[1]["metadata"]["name"], "daily");
    }

    #[test]
    fn less_than_for_a_plain_name_is_told_with_what_the_api_server_said() {
        let Some(long) = step(&sample(), Naming::Long) else { panic!() };
        let Step::Named { objects, .. } = &long else { panic!() };
        let of = |ids: &[&str]| -> Snapshot {
            ids.iter().map(|id| ((*id).to_owned(), Default::default())).collect()
        };
        let run = |ids: &[&str], trouble: Option<String>| {
            let mut end = of(ids);
            end.insert(id(&objects[0]), Default::default());
            let refused = [("name-of-52-letters".to_owned(), "no more than 63".to_owned())].into();
            let outcome = Outcome {
                ends: vec![end],
                bystander: (of(&["Db bystander/db", "Service bystander/db"]), Snapshot::new()),
                refused,
                troubles: trouble.into_iter().collect(),
                ..Outcome::default()
            };
            let found = faults(std::slice::from_ref(&long), &outcome).found;
            found.iter().map(Difference::words).collect::<Vec<_>>()
        };
        assert!(run(&["Service name-of-52-letters/db"], None).is_empty());
        assert_eq!(
            run(&[], None),
            [
                "Db with a name of 52 letters: the API server said: no more than 63",
                "Db with a name of 52 letters has 0 Service, with a plain name it has 1",
            ]
        );
        let failing = format!("reconciles of name-of-52-letters/db {FAIL}: too long");
        assert_eq!(run(&["Service name-of-52-letters/db"], Some(failing)).len(), 1);
        assert_eq!(
            run(&["Service name-of-52-letters/db"], Some("the program has ended".to_owned())).len(),
            1
        );
    }
}
