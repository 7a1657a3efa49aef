//! A cache that holds much more than what is used of it.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Hint;

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
    storm: false,
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
