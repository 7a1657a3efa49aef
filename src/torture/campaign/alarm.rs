//! Alarms, and the findings that are made of them: those with the same symptom are one.

use super::learn::words;
use crate::fields::mutation::Mutation;
use crate::input::TortureInput;
use crate::judge::Difference;
use crate::plan::{Class, Disturbance};
use crate::replay::Replay;
use crate::report::{Finding, Progress, Report};
use crate::shrink::Small;
use crate::writes_beside::WritesBeside;
use anyhow::Result;
use opdev_steps::scenario::Scenario;
use std::sync::Arc;

/// An alarm on its way to a finding.
pub(crate) struct Alarm {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) disturbance: Option<Disturbance>,
    pub(crate) field: Option<Mutation>,
    pub(crate) differences: Vec<Difference>,
    /// How often it came, of how many runs.
    pub(crate) times: (u32, u32),
    /// The places in the operator's code: where it was disturbed, and where what differs is written.
    pub(crate) code: (Option<String>, Option<String>),
    /// Writes of the operator undisturbed and disturbed.
    pub(crate) writes: WritesBeside,
    /// The smallest plan with the same difference, where there is a smaller one.
    pub(crate) small: Option<Small>,
}

/// How an alarm shows itself.
pub(super) struct Symptom {
    scenario: Arc<Scenario>,
    class: Option<Class>,
    differences: Vec<Difference>,
}

impl Symptom {
    pub(super) fn of(alarm: &Alarm) -> Symptom {
        Symptom {
            scenario: Arc::clone(&alarm.scenario),
            class: alarm.disturbance.as_ref().map(Disturbance::class),
            differences: alarm.differences.clone(),
        }
    }

    /// Returns true if it is the same fault, as far as one can see. Disturbances of one kind that lead to one
    /// difference first are mostly one fault: what else differs hangs on the moment.
    pub(super) fn is_like(&self, other: &Symptom) -> bool {
        let scenario = self.scenario.name == other.scenario.name
            && self.scenario.sample.path == other.scenario.sample.path;
        let leads = self.class.is_some() && self.class == other.class && scenario;
        self.differences == other.differences
            || leads && self.differences.first() == other.differences.first()
    }
}

/// Makes a finding of an alarm, unless it is one that is known: those with the same symptom are one.
pub(crate) fn found(
    input: &TortureInput,
    new: Alarm,
    alarms: &mut Vec<Alarm>,
    report: &mut Report,
    tell: &mut impl FnMut(&Progress),
) -> Result<()> {
    let symptom = Symptom::of(&new);
    let same = |known: &Alarm| Symptom::of(known).is_like(&symptom);
    if let Some(at) = alarms.iter().position(same) {
        report.findings[at].alike += 1;
        return Ok(());
    }
    let (scenario, disturbance, differences) = match &new.small {
        Some(small) => (&small.scenario, Some(&small.disturbance), &small.differences),
        None => (&new.scenario, new.disturbance.as_ref(), &new.differences),
    };
    // Other plans may have one smallest plan.
    let is_smallest = |known: &Alarm| {
        let small = known.small.as_ref();
        small
            .is_some_and(|known| known.differences == *differences && Some(&known.disturbance) == disturbance)
    };
    if let Some(at) = alarms.iter().position(is_smallest) {
        report.findings[at].alike += 1;
        return Ok(());
    }
    let number = alarms.len() + 1;
    let replay = Replay {
        seed: input.seed,
        scenario: (**scenario).clone(),
        disturbance: disturbance.cloned(),
        field: new.field.clone(),
        exec: input.exec.iter().map(ToString::to_string).collect(),
        differences: differences.clone(),
    };
    let file = match &input.folder {
        Some(folder) => {
            let path = format!(".opdev/torture/{number}.yaml");
            folder.write(&format!("{number}.yaml"), replay.text(&path)?.as_bytes())?;
            Some(path)
        }
        None => None,
    };
    let finding = Finding {
        number,
        scenario: new.scenario.name.clone(),
        sample: new.scenario.sample.path.clone(),
        class: match (&new.field, &new.disturbance) {
            (Some(_), _) => Some(Class::Field),
            (None, Some(disturbance)) => Some(disturbance.class()),
            (None, None) => new.scenario.is_check().then_some(Class::Check),
        },
        how: match (&new.field, disturbance) {
            (Some(field), _) => field.to_string(),
            (None, Some(disturbance)) => disturbance.words(&scenario.steps),
            (None, None) if new.scenario.is_check() => "none: the scenario itself asks for it".to_owned(),
            (None, None) => "nothing disturbed it: each undisturbed run ends like that".to_owned(),
        },
        steps: words(scenario),
        differences: differences.clone(),
        place: new.code.0.clone(),
        code: new.code.1.clone(),
        writes: new.writes.clone(),
        times: new.times,
        alike: 0,
        known: false,
        file,
    };
    tell(&Progress::Found(finding.clone()));
    report.findings.push(finding);
    alarms.push(new);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Rule;
    use opdev_steps::scenario::Sample;

    fn symptom(scenario: &str, class: Class, paths: &[&str]) -> Symptom {
        let difference = |path: &&str| Difference {
            rule: Rule::End,
            object: "Pod default/a".to_owned(),
            path: (*path).to_owned(),
            undisturbed: "1".to_owned(),
            disturbed: "2".to_owned(),
            after: String::new(),
        };
        let differences = paths.iter().map(difference).collect();
        let (name, sample) = (scenario.to_owned(), Sample::default());
        Symptom {
            scenario: Arc::new(Scenario { name, sample, steps: Vec::new() }),
            class: Some(class),
            differences,
        }
    }

    #[test]
    fn disturbances_of_one_kind_that_lead_to_one_difference_are_one_finding() {
        let one = symptom("recreate", Class::Crash, &[".spec.a", ".spec.b"]);
        assert!(one.is_like(&symptom("recreate", Class::Crash, &[".spec.a"])));
        assert!(!one.is_like(&symptom("recreate", Class::Crash, &[".spec.b"])));
        assert!(!one.is_like(&symptom("recreate", Class::Past, &[".spec.a"])));
        assert!(!one.is_like(&symptom("up-down", Class::Crash, &[".spec.a"])));
        assert!(
            one.is_like(&symptom("up-down", Class::Past, &[".spec.a", ".spec.b"])),
            "all of it is the same"
        );
    }
}
