//! A cache that looks as if it was behind the program's own writes, and is not.

use super::*;

/// The cache answers a get of a pod.
fn get(world: &mut World, id: &str, name: &str, rv: &str) {
    let object = TraceObject {
        version: "v1".into(),
        kind: "Pod".into(),
        namespace: "default".into(),
        name: name.into(),
        rv: rv.into(),
        ..TraceObject::default()
    };
    let error = if rv.is_empty() { "NotFound".to_owned() } else { String::new() };
    let (t, id) = (world.now(), id.to_owned());
    world.tell(Record::Read(CacheRead { t, id, verb: "get".into(), object, error, ..CacheRead::default() }));
}

#[test]
fn a_cache_is_not_behind_what_somebody_else_has_done_since() {
    let mut world = World::new();
    let make = |world: &mut World, name: &str, rv: &str| {
        world.call("a", "POST", PODS, json!({}), 201, pod(name, rv));
    };
    world.begin("podset", "a", Vec::new());
    make(&mut world, "demo-x", "12");
    make(&mut world, "demo-y", "13");
    world.end("a", "");
    // It does not have it yet.
    world.begin("podset", "b", Vec::new());
    get(&mut world, "b", "demo-x", "");
    assert_eq!(findings(&world.end("b", "gone"))[0].0, FindingKind::StaleRead);
    // Garbage collection takes it while a reconcile runs.
    world.begin("podset", "c", Vec::new());
    get(&mut world, "c", "demo-x", "12");
    world.event("DELETED", pod("demo-x", "20"));
    get(&mut world, "c", "demo-x", "");
    assert!(findings(&world.end("c", "gone")).is_empty());
    // Somebody makes again what the program has deleted.
    world.begin("podset", "d", Vec::new());
    world.call("d", "DELETE", &format!("{PODS}/demo-y"), json!({}), 200, pod("demo-y", "21"));
    get(&mut world, "d", "demo-y", "13");
    assert_eq!(findings(&world.end("d", ""))[0].0, FindingKind::StaleRead);
    world.event("DELETED", pod("demo-y", "21"));
    world.event("ADDED", pod("demo-y", "22"));
    world.begin("podset", "e", Vec::new());
    get(&mut world, "e", "demo-y", "22");
    world.list("e", "app=demo", &[("demo-y", "22")]);
    assert!(findings(&world.end("e", "")).is_empty());
}
