//! A cache that holds much more than what is used of it.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Hint;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "cache-too-wide",
    severity: Hint,
    name: "wide cache",
    what: "The manager keeps all objects of a kind in memory, and uses only the few that it has made itself. On a large \
           cluster that costs memory, and each change of any of them is sent to the program.",
    when: "the cache holds 50 objects or more of all namespaces, and the program has run for a while. Reconciles have read fewer than a tenth of them \
           by name or in lists, each of which the program has made.",
    never: "kinds of which a reconcile has used an object of somebody else; caches of one namespace, and of metadata only.",
    fix: "Give the children a label, and narrow the cache to it: \
          cache.Options{ByObject: map[client.Object]cache.ByObject{&Kind{}: {Label: ...}}}.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
    judge: None,
    absent: Some(absent),
};

fn absent(table: &Table, out: &mut Vec<Told>) {
    if !table.has_run() {
        return;
    }
    for ((_, kind), cache) in table.caches.0.iter().filter(|(_, cache)| cache.news && cache.objects > 0) {
        let Some((controller, object, reconcile)) = &cache.reader else { continue };
        let own = cache.used.iter().all(|key| table.makers.contains_key(key));
        if !own || cache.used.is_empty() || cache.used.len() * 10 >= cache.objects {
            continue;
        }
        let (holds, used) = (cache.objects, cache.used.len());
        let why = format!(
            "the cache holds {holds} objects of {kind}, and reconciles have used {used}, all of the program's own"
        );
        let told = Told::new(&RULE, object, table.now, *reconcile).say(kind, why);
        let fix = RULE.fix.replace("&Kind{}", &format!("&{kind}{{}}"));
        out.push(Told { fix, field: kind.clone(), controller: controller.clone(), ..told });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;
    use opdev_event::evidence::CachedFact;

    /// Reconciles that make a child in a cache of so many objects, and read what else is named.
    fn cache(
        objects: usize,
        read: &[ObjectRef],
        causes: Option<&ObjectRef>,
    ) -> Vec<(String, FindingSeverity)> {
        let mut world = World::new();
        let role = child("ClusterRole", "a");
        world.reconcile(|one| one.writes = vec![create(&role, 1)]);
        world.now += 30_000;
        world.reconcile(|one| {
            let of = |object: &ObjectRef| ReadFact { objects: vec![object.key()], ..ReadFact::default() };
            one.reads = std::iter::once(&role).chain(read).map(of).collect();
            one.cached =
                vec![CachedFact { kind: "ClusterRole".to_owned(), objects, ..CachedFact::default() }];
            let by = |object: &ObjectRef| woken(object.clone(), WatchEvent::Modified, None, false);
            one.causes = causes.map(by).into_iter().collect();
        });
        world.wait(20);
        world.rules().into_iter().filter(|(rule, _)| rule == "cache-too-wide").collect()
    }

    #[test]
    fn a_cache_that_holds_what_nobody_uses_is_a_hint() {
        let hint = [("cache-too-wide".to_owned(), FindingSeverity::Hint)];
        assert_eq!(cache(70, &[], None), hint);
        assert!(cache(9, &[], None).is_empty(), "few");
        let admin = child("ClusterRole", "admin");
        assert!(
            cache(70, std::slice::from_ref(&admin), None).is_empty(),
            "one that others made: a label does not fit"
        );
        assert!(cache(70, &[], Some(&admin)).is_empty(), "others lead to reconciles");
    }
}
