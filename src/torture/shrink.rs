//! The smallest plan that still ends with the difference of a finding: steps and fields of the sample that do
//! not matter are taken away one by one. And the place in the operator's code that a difference leads to.

use super::campaign::learn::{learn, once, words};
use super::input::TortureInput;
use super::judge::Difference;
use super::plan::{Disturbance, Past, Write};
use super::point::Point;
use super::subject::Prepared;
use futures::future::join;
use futures::stream::{self, StreamExt as _};
use opdev_steps::scenario::{Scenario, Step};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Smaller plans that are tried for one finding: in this process, and with a program.
const MOST: (u32, u32) = (24, 6);

/// A plan that is smaller than the one that was found.
pub(super) struct Small {
    pub(super) scenario: Arc<Scenario>,
    pub(super) disturbance: Disturbance,
    pub(super) differences: Vec<Difference>,
}

/// Makes a plan smaller for as long as one of its differences comes again; nothing where it is the smallest.
pub(super) async fn shrink(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    (scenario, window): (&Arc<Scenario>, Duration),
    disturbance: &Disturbance,
    differences: &[Difference],
    over: impl Fn() -> bool,
) -> Option<Small> {
    let mut best: Option<Small> = None;
    let most = if prepared.subject.is_program() { MOST.1 } else { MOST.0 };
    let mut tries = 0;
    'smaller: loop {
        let (scenario, disturbance) = match &best {
            Some(small) => (&small.scenario, &small.disturbance),
            None => (scenario, disturbance),
        };
        for (scenario, disturbance) in candidates(scenario, disturbance) {
            if tries == most || over() {
                return best;
            }
            tries += 1;
            let scenario = Arc::new(scenario);
            let again = comes_again(input, prepared, (&scenario, window), &disturbance, differences).await;
            if let Some(differences) = again {
                best = Some(Small { scenario, disturbance, differences });
                continue 'smaller;
            }
        }
        return best;
    }
}

/// The differences of a smaller plan, where one of them is one of those that were found.
async fn comes_again(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    (scenario, window): (&Arc<Scenario>, Duration),
    disturbance: &Disturbance,
    before: &[Difference],
) -> Option<Vec<Difference>> {
    // A run in this process follows from its seed; a program is asked twice.
    let runs = if prepared.subject.is_program() { 2 } else { 1 };
    let learned = learn(input, prepared, scenario, (runs, window));
    let one = |_| once(input, prepared, scenario, Some(disturbance.clone()), (input.seed, window.into()));
    let disturbed = stream::iter(0..runs).map(one).buffered(prepared.most).collect::<Vec<_>>();
    let (known, all) =
        if prepared.most > 1 { join(learned, disturbed).await } else { (learned.await, disturbed.await) };
    let (known, steps) = (known.ok()?, words(scenario));
    let mut found = None;
    for ran in all {
        let ran = ran.ok().filter(|ran| ran.met)?;
        let class = disturbance.class();
        let from = disturbance.effective_from();
        let now = known.learned.judge(&ran.outcome, class, (&steps, from), &input.ignored);
        now.iter().find(|one| before.iter().any(|other| alike(one, other)))?;
        found = Some(now);
    }
    found
}

/// Returns true if two differences are of one field of one object: with other steps it may have other values.
fn alike(one: &Difference, other: &Difference) -> bool {
    one.rule == other.rule && one.object == other.object && one.path == other.path
}

/// Plans with one step or one field of the sample less, the most promising first.
fn candidates(scenario: &Scenario, disturbance: &Disturbance) -> Vec<(Scenario, Disturbance)> {
    let mut found = Vec::new();
    for at in (1..scenario.steps.len()).rev() {
        let mut fewer = scenario.clone();
        fewer.steps.remove(at);
        found.extend(without_step(disturbance, at).into_iter().map(|one| (fewer.clone(), one)));
    }
    let spec = scenario.sample.objects.first().and_then(|first| first["spec"].as_object());
    for field in spec.into_iter().flat_map(|spec| spec.keys()) {
        let patched =
            |step: &Step| matches!(step, Step::Patch { patch, .. } if patch["spec"].get(field).is_some());
        if !scenario.steps.iter().any(patched) {
            found.push((without_field(scenario, field), disturbance.clone()));
        }
    }
    found
}

/// The disturbance once a step is taken away; nothing where it needs that step. A write may be another one of
/// those with its signature then.
fn without_step(disturbance: &Disturbance, at: usize) -> Vec<Disturbance> {
    let moved = |step: usize| if step > at { step - 1 } else { step };
    let points = |point: &Point, of: fn(Point) -> Disturbance| {
        let earlier = (point.nth > 1).then(|| Point { nth: point.nth - 1, ..point.clone() });
        [Some(point.clone()), earlier].into_iter().flatten().map(of).collect()
    };
    match disturbance {
        Disturbance::Restart(step) | Disturbance::Down(step) if *step == at => Vec::new(),
        Disturbance::Restart(step) => vec![Disturbance::Restart(moved(*step))],
        Disturbance::Down(step) => vec![Disturbance::Down(moved(*step))],
        Disturbance::Past(past) if past.seen == at || past.after == at => Vec::new(),
        Disturbance::Past(past) => {
            let (seen, after) = (moved(past.seen), moved(past.after));
            vec![Disturbance::Past(Past { seen, after, ..past.clone() })]
        }
        Disturbance::Blind { first, .. } if *first == at || first + 1 == at => Vec::new(),
        Disturbance::Blind { resource, first } => {
            vec![Disturbance::Blind { resource: resource.clone(), first: moved(*first) }]
        }
        // Without this step the object would be there in the end.
        Disturbance::Deleted(_) if at == 1 => Vec::new(),
        Disturbance::Deleted(point) => points(point, Disturbance::Deleted),
        Disturbance::BadPods(_) => Vec::new(),
        Disturbance::Crash(point) => points(point, Disturbance::Crash),
        Disturbance::Slow(point) => points(point, Disturbance::Slow),
        Disturbance::Lost(point) => points(point, Disturbance::Lost),
        Disturbance::Conflict(point) => points(point, Disturbance::Conflict),
    }
}

/// The scenario with a sample that lacks one field of its spec.
fn without_field(scenario: &Scenario, field: &str) -> Scenario {
    let mut fewer = scenario.clone();
    let Some(kind) = fewer.sample.objects.first().map(|first| first["kind"].clone()) else { return fewer };
    let strip = |objects: &mut Vec<Value>| {
        for object in objects.iter_mut().filter(|object| object["kind"] == kind) {
            if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                spec.remove(field);
            }
        }
    };
    strip(&mut fewer.sample.objects);
    for step in &mut fewer.steps {
        if let Step::Apply(objects) = step {
            strip(objects);
        }
    }
    fewer
}

/// The line of the operator that wrote an object which differs, in words: in the disturbed run, else in an
/// undisturbed one.
pub(super) fn code(differences: &[Difference], disturbed: &[Write], undisturbed: &[Write]) -> Option<String> {
    let last = |writes: &[Write], object: &str| {
        let of = |write: &&Write| write.object == object && write.place.is_some();
        let write = writes.iter().rfind(of)?;
        Some((write.verb.clone(), write.place.clone()?))
    };
    differences.iter().find_map(|one| {
        let object = &one.object;
        if let Some((verb, place)) = last(disturbed, object) {
            return Some(format!("{place}  the last {verb} of {object}"));
        }
        let (verb, place) = last(undisturbed, object)?;
        Some(format!("{place}  the {verb} of {object} that did not happen"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::judge::Rule;
    use super::*;
    use opdev_steps::scenario::Sample;
    use serde_json::json;

    fn scenario() -> Scenario {
        let object = json!({"kind": "Db", "metadata": {"name": "a"}, "spec": {"size": 1, "tls": true}});
        let sample = Sample { path: String::new(), others: Vec::new(), objects: vec![object.clone()] };
        let patch = Step::Patch { object: object.clone(), patch: json!({"spec": {"size": 2}}) };
        let steps = vec![Step::Apply(vec![object.clone()]), patch, Step::Delete(vec![object])];
        Scenario { name: "any".to_owned(), sample, steps }
    }

    #[test]
    fn steps_and_fields_are_taken_away_but_for_what_the_disturbance_needs() {
        let found = candidates(&scenario(), &Disturbance::Down(1));
        let steps: Vec<usize> = found.iter().map(|(scenario, _)| scenario.steps.len()).collect();
        assert_eq!(steps, [2, 3], "the last step, and the field that no step changes");
        assert_eq!(found[1].0.sample.objects[0]["spec"], json!({"size": 1}));
        let Step::Apply(objects) = &found[1].0.steps[0] else { panic!("{:?}", found[1].0.steps) };
        assert_eq!(objects[0], json!({"kind": "Db", "metadata": {"name": "a"}, "spec": {"size": 1}}));
        assert_eq!(without_step(&Disturbance::Down(2), 1), [Disturbance::Down(1)]);
    }

    #[test]
    fn a_write_may_be_an_earlier_one_once_a_step_is_gone() {
        let point = |nth| Point { write: "create pods".to_owned(), nth };
        let found = without_step(&Disturbance::Crash(point(2)), 1);
        assert_eq!(found, [Disturbance::Crash(point(2)), Disturbance::Crash(point(1))]);
    }

    #[test]
    fn the_code_is_that_of_the_last_write_of_the_object() {
        let write = |verb: &str, place: &str| Write {
            point: Point { write: String::new(), nth: 1 },
            call: Point { write: String::new(), nth: 1 },
            verb: verb.to_owned(),
            resource: "pods".to_owned(),
            changes: true,
            continues: false,
            step: 0,
            object: "Pod x/a".to_owned(),
            place: Some(place.to_owned()),
        };
        let difference = Difference {
            rule: Rule::End,
            object: "Pod x/a".to_owned(),
            path: String::new(),
            undisturbed: "there".to_owned(),
            disturbed: String::new(),
            after: String::new(),
        };
        let all = [write("create", "a.go:1"), write("delete", "a.go:2")];
        let told = |disturbed| code(std::slice::from_ref(&difference), disturbed, &all[..1]);
        assert_eq!(told(&all).as_deref(), Some("a.go:2  the last delete of Pod x/a"));
        assert_eq!(told(&[]).as_deref(), Some("a.go:1  the create of Pod x/a that did not happen"));
    }
}
