//! How far each ReplicaSet is scaled: rolling update, recreate, proportional scaling, history cleanup.
//! Never writes; it plans on `sets`.

use super::sets::{Set, max_surge, max_unavailable, removable};
use super::{Rollout, conditions};
use crate::fields::{count, int, name, text, uid};
use crate::replicaset::age_order;
use opdev_apimachinery::attributes::Lookup;
use opdev_object::meta;

impl Rollout<'_> {
    /// Brings the existing new set up to date, without making one.
    pub(super) fn adopt_revision(&mut self) {
        let Some(revision) = self.sets.adopt_new(self.object) else { return };
        self.revision = Some(revision);
        if self.deadline().is_some() && conditions::find(&self.status, "Progressing").is_none() {
            let message = format!(
                "Found new replica set \"{}\"",
                self.sets.new_set().map(|set| name(&set.object)).unwrap_or_default()
            );
            self.say("Progressing", "True", "FoundNewReplicaSet", &message);
        }
    }

    /// Makes the new set where there is none.
    fn ensure_new(&mut self) {
        if self.sets.new.is_some() {
            self.adopt_revision();
            return;
        }
        let (revision, collisions) = self.sets.create_new(self.view, self.object);
        self.revision = Some(revision);
        if let Some(collisions) = collisions {
            self.status.insert("collisionCount".into(), collisions.into());
        }
        let replicas = self.new_size();
        if let Some(at) = self.sets.new {
            self.sets.scale(at, replicas, self.object);
        }
        if self.deadline().is_some() {
            let message = format!(
                "Created new replica set \"{}\"",
                self.sets.new_set().map(|set| name(&set.object)).unwrap_or_default()
            );
            self.say("Progressing", "True", "NewReplicaSetCreated", &message);
        }
    }

    /// Replicas the new set may have now.
    fn new_size(&self) -> i64 {
        let wanted = self.wanted();
        let current = self.sets.new_set().map_or(0, |set| set.replicas);
        if text(self.object, "/spec/strategy/type") == "Recreate" {
            return wanted;
        }
        let room = wanted + max_surge(self.object) - self.sets.total();
        if room <= 0 { current } else { current + room.min(wanted - current) }
    }

    /// Scales the new set towards the wanted size; true when that changes it.
    fn reconcile_new(&mut self) -> bool {
        let Some(at) = self.sets.new else { return false };
        let wanted = self.wanted();
        let current = self.sets.all[at].replicas;
        if current == wanted {
            return false;
        }
        let size = if current > wanted { wanted } else { self.new_size() };
        self.sets.scale(at, size, self.object)
    }

    /// Scales old sets down as far as availability allows: first what is broken anyway, then the rest.
    fn reconcile_old(&mut self) -> bool {
        let mut old = self.sets.old();
        if old.iter().map(|at| self.sets.all[*at].replicas).sum::<i64>() == 0 {
            return false;
        }
        old.sort_by_key(|at| age_order(&self.sets.all[*at].object));
        let least = self.wanted() - max_unavailable(self.object);
        let new_unavailable = self.sets.new_set().map_or(0, |set| set.replicas - set.available());
        let mut budget = self.sets.total() - least - new_unavailable;
        if budget <= 0 {
            return false;
        }
        let mut changed = false;
        for at in &old {
            let Set { replicas, .. } = self.sets.all[*at];
            let broken = (replicas - self.sets.all[*at].available()).min(budget);
            if broken > 0 {
                budget -= broken;
                changed |= self.sets.scale(*at, replicas - broken, self.object);
            }
        }
        let mut spare = self.sets.lasting() - least;
        for at in &old {
            let replicas = self.sets.all[*at].replicas;
            let fewer = replicas.min(spare);
            if fewer > 0 {
                spare -= fewer;
                changed |= self.sets.scale(*at, replicas - fewer, self.object);
            }
        }
        changed
    }

    /// One step of a rolling update.
    pub(super) fn roll(&mut self) {
        let created = self.sets.new.is_none();
        self.ensure_new();
        if !created && !self.reconcile_new() {
            let moved = self.reconcile_old();
            if !moved && self.complete(&self.status) {
                self.clean_up();
            }
        }
        self.settle_status(true);
    }

    /// One step of a recreate: everything old goes before anything new comes.
    pub(super) fn recreate(&mut self) {
        self.adopt_revision();
        let mut moved = false;
        for at in self.sets.old() {
            if self.sets.all[at].replicas > 0 {
                moved |= self.sets.scale(at, 0, self.object);
            }
        }
        if !moved && !self.old_pods_run() {
            let created = self.sets.new.is_none();
            self.ensure_new();
            if !created {
                self.reconcile_new();
            }
            if self.complete(&self.status) {
                self.clean_up();
            }
        }
        self.settle_status(true);
    }

    fn old_pods_run(&self) -> bool {
        let old: Vec<_> = self.sets.old().into_iter().map(|at| uid(&self.sets.all[at].object)).collect();
        let mut run = false;
        for set in old {
            self.view.each("pods", meta::namespace(self.object), &Lookup::ControlledBy(set), &mut |pod| {
                run |= !pod.pod_finished() && pod.controller().is_some_and(|owner| owner.uid == set);
            });
        }
        run
    }

    /// After the Deployment itself was scaled: the only active set takes all, several share by size.
    pub(super) fn scale_proportionally(&mut self) {
        let wanted = self.wanted();
        let active: Vec<_> = (0..self.sets.all.len()).filter(|at| self.sets.all[*at].replicas > 0).collect();
        let only = match active.as_slice() {
            [] => self.sets.new.or_else(|| self.sets.old().last().copied()),
            [only] => Some(*only),
            _ => None,
        };
        if let Some(at) = only {
            if self.sets.all[at].replicas != wanted {
                self.sets.scale(at, wanted, self.object);
            }
            return;
        }
        if self.sets.saturated(wanted) {
            for at in self.sets.old() {
                if self.sets.all[at].replicas > 0 {
                    self.sets.scale(at, 0, self.object);
                }
            }
        } else if text(self.object, "/spec/strategy/type") != "Recreate" {
            self.share(active, wanted);
        }
    }

    fn share(&mut self, mut active: Vec<usize>, wanted: i64) {
        let allowed = if wanted > 0 { wanted + max_surge(self.object) } else { 0 };
        let to_add = allowed - self.sets.total();
        active.sort_by_key(|at| {
            let set = &self.sets.all[*at];
            (-set.replicas, if to_add > 0 { -(*at as i64) } else { *at as i64 })
        });
        let mut added = 0;
        let mut sizes = Vec::new();
        for at in &active {
            let set = &self.sets.all[*at];
            let mut size = set.replicas;
            if to_add != 0 {
                let part = self.proportion(set, wanted, to_add, added);
                size += part;
                added += part;
            }
            sizes.push(size);
        }
        if let Some(first) = sizes.first_mut() {
            *first = (*first + to_add - added).max(0);
        }
        for (at, size) in active.into_iter().zip(sizes) {
            self.sets.scale(at, size, self.object);
        }
    }

    fn proportion(&self, set: &Set, wanted: i64, to_add: i64, added: i64) -> i64 {
        if set.replicas == 0 || to_add == 0 || to_add == added {
            return 0;
        }
        let fraction = if wanted == 0 {
            -set.replicas
        } else {
            let before = set.maximum().unwrap_or_else(|| count(self.object, "/status/replicas")).max(1);
            let size = set.replicas * (wanted + max_surge(self.object));
            ((size as f64 / before as f64).round() as i64) - set.replicas
        };
        let allowed = to_add - added;
        if to_add > 0 { fraction.min(allowed) } else { fraction.max(allowed) }
    }

    /// Removes the oldest revisions beyond `revisionHistoryLimit`.
    pub(super) fn clean_up(&mut self) {
        let limit = int(self.object, "/spec/revisionHistoryLimit").unwrap_or(10);
        if limit == i64::from(i32::MAX) {
            return;
        }
        let mut old: Vec<_> = self.sets.old();
        old.retain(|at| meta::deletion_timestamp(&self.sets.all[*at].object).is_none());
        old.sort_by_key(|at| self.sets.all[*at].revision());
        let surplus = (old.len() as i64 - limit).max(0) as usize;
        for at in old.into_iter().take(surplus) {
            if removable(&self.sets.all[at]) {
                self.sets.all[at].delete();
            }
        }
    }
}
