//! Rules over what the server answers, and over what is made, owned and told.

use super::*;

#[test]
fn conflicts_count_once_they_come_in_a_row() {
    let conflict = |sent: &str| RefusalFact {
        at: at(1),
        verb: "update".to_owned(),
        target: "shelves/a".to_owned(),
        object: Some(cr("a").key()),
        status: 409,
        reason: "Conflict".to_owned(),
        sent: sent.to_owned(),
        ..RefusalFact::default()
    };
    let run = |sent: [&str; 3], success: bool| {
        let mut world = World::new();
        for one_sent in sent {
            world.reconcile(|one| one.refusals = vec![conflict(one_sent)]);
            if success {
                world.reconcile(|one| {
                    one.writes = vec![update(&cr("a"), "status", vec![field(".status.x", 1, 2)])];
                });
            }
        }
        world.rules()
    };
    assert_eq!(run(["1", "2", "3"], false), [("conflict".to_owned(), FindingSeverity::Warning)]);
    assert_eq!(run(["1", "1", "1"], false), [("conflict".to_owned(), FindingSeverity::Error)]);
    assert!(run(["1", "2", "3"], true).is_empty());
    // A stale read is told where the reconcile failed by it.
    let stale = |error: &str| {
        let mut world = World::new();
        world.reconcile(|one| {
            let message = "the cache was behind".to_owned();
            one.stale = vec![StaleFact { object: cr("a").key(), missing: false, message }];
            one.refusals = vec![conflict("1")];
            one.error = error.to_owned();
        });
        world.loud()
    };
    assert_eq!(stale("the object has been modified"), ["stale-read"]);
    assert!(stale("").is_empty(), "answered with a requeue");
}

#[test]
fn what_the_server_refuses_twice_is_told_but_not_what_ends_well() {
    let refusal = |status: u16, reason: &str, message: &str| RefusalFact {
        at: at(1),
        verb: "update".to_owned(),
        target: "services/web".to_owned(),
        status,
        reason: reason.to_owned(),
        field: "spec.clusterIP".to_owned(),
        message: message.to_owned(),
        ..RefusalFact::default()
    };
    let run = |one_refusal: RefusalFact, error: &str, times: usize| {
        let mut world = World::new();
        for _ in 0..times {
            world.reconcile(|one| {
                one.refusals = vec![one_refusal.clone()];
                one.error = error.to_owned();
            });
        }
        world.loud()
    };
    let invalid = refusal(422, "Invalid", "field is immutable");
    assert_eq!(run(invalid.clone(), "invalid", 2), ["refused-write"]);
    assert!(run(invalid.clone(), "invalid", 1).is_empty());
    assert_eq!(run(invalid.clone(), "", 4), ["error-swallowed"], "it ends well: another fault");
    assert!(run(RefusalFact { dry_run: true, ..invalid }, "invalid", 4).is_empty());
    let forbidden = "services \"web\" is forbidden: User \"system:serviceaccount:a:b\" cannot update resource \"services\" in API group \"\"";
    assert_eq!(run(refusal(403, "Forbidden", forbidden), "forbidden", 1), ["missing-right"]);
    let quota = "pods \"x\" is forbidden: exceeded quota";
    assert_eq!(run(refusal(403, "Forbidden", quota), "quota", 2), ["refused-write"]);
    let namespace = refusal(403, "NamespaceTerminating", "because it is being terminated");
    assert_eq!(run(namespace, "terminating", 3), ["namespace-terminating"]);
}

#[test]
fn a_refusal_that_the_code_ignores_is_no_fault_because_something_else_fails() {
    let refusal = |verb: &str, status: u16, reason: &str, message: &str| RefusalFact {
        at: at(1),
        verb: verb.to_owned(),
        target: "services/web".to_owned(),
        object: Some(cr("web").key()),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..RefusalFact::default()
    };
    let run = |refusals: &[&RefusalFact], error: &str| {
        let mut world = World::new();
        for _ in 0..3 {
            world.reconcile(|one| {
                one.refusals = refusals.iter().copied().cloned().collect();
                one.error = error.to_owned();
            });
        }
        world.loud()
    };
    let there = refusal("create", 409, "AlreadyExists", "services \"web\" already exists");
    let text = "making it: services \"web\" already exists";
    assert_eq!(run(&[&there], text), ["refused-write"]);
    assert!(run(&[&there], "Service \"web\" not found").is_empty(), "the cache failed it");
    assert!(run(&[&there], "dial tcp: connection refused").is_empty(), "another fault");
    let invalid = refusal("update", 422, "Invalid", "the value of clusterIP is immutable");
    assert_eq!(run(&[&invalid], "could not update"), ["refused-write"], "in words of its own");
    assert_eq!(run(&[&invalid, &there], text), ["refused-write"]);
    let forbidden = "nodes \"web\" is forbidden: User \"a\" cannot get resource \"nodes\"";
    let right = refusal("get", 403, "Forbidden", forbidden);
    assert_eq!(run(&[&right], forbidden), ["missing-right"]);
    assert!(run(&[&right], "Service \"web\" not found").is_empty(), "asked once, and done without it");
    let create = refusal("create", 422, "Invalid", "the value of clusterIP is wrong");
    assert_eq!(run(&[&create], "Service \"web\" not found"), ["refused-write"], "it could not be made");
}

#[test]
fn a_cache_that_lacks_what_was_just_made_is_told_where_it_fails_the_reconcile() {
    let of = |missing: bool, error: &str| {
        let mut world = World::new();
        world.reconcile(|one| {
            let message = "the cache was behind".to_owned();
            one.stale = vec![StaleFact { object: cr("web").key(), missing, message }];
            one.error = error.to_owned();
        });
        world.loud()
    };
    let run = |error| of(true, error);
    let words = "Shelf.lib.example.com \"web\" not found";
    assert!(of(false, words).is_empty(), "the cache had an older version of it");
    assert_eq!(run("Shelf.lib.example.com \"web\" not found"), ["stale-read"]);
    assert!(run("Shelf.lib.example.com \"other\" not found").is_empty(), "another object");
    assert!(run("Secret \"web\" not found").is_empty(), "another kind of the same name");
    assert!(run("secrets \"web\" not found").is_empty(), "the API server's own answer");
    assert!(run("").is_empty(), "it went well");
}

#[test]
fn a_panic_says_its_own_words() {
    let mut world = World::new();
    world.reconcile(|one| one.panic = "assignment to entry in nil map".to_owned());
    let opened = world.opened();
    assert_eq!(opened[0].rule, "panic");
    assert!(opened[0].why.ends_with("panics: assignment to entry in nil map"), "{}", opened[0].why);
    // Once it is saved and has gone well three times it is fixed.
    world.restart(&["controller.go"]);
    for _ in 0..3 {
        world.reconcile(|_| {});
    }
    assert!(world.closed()[0].1.starts_with("fixed by your save of controller.go"), "{:?}", world.closed());
}

#[test]
fn objects_and_events_without_end_are_told() {
    let grow = |wanted: u64| {
        let mut world = World::new();
        for round in 0..14 {
            world.reconcile(|one| {
                one.causes = own();
                one.wanted = wanted;
                let write = create(&child("ConfigMap", &format!("x-{round}")), round * 10);
                one.writes = vec![WriteFact { tied: true, ..write }];
            });
        }
        world.loud()
    };
    assert_eq!(grow(3), ["object-growth"]);
    assert!(grow(20).is_empty());
    let event = |message: fn(u64) -> u64| {
        let mut world = World::new();
        for round in 0..14_u64 {
            world.reconcile(|one| {
                let fact = opdev_event::evidence::EventFact {
                    about: cr("a").key(),
                    reason: "Synced".to_owned(),
                    message: message(round),
                };
                let write = create(&child("Event", &format!("e-{round}")), 10);
                one.beside = vec![WriteFact { at: one.at, event: Some(fact), ..write }];
                let replicas = vec![field(".spec.replicas", round + 1, round + 2)];
                one.writes =
                    vec![WriteFact { at: one.at, ..update(&child("Deployment", "web"), "", replicas) }];
                one.causes = if round == 6 { by_user() } else { own() };
            });
        }
        world.loud()
    };
    assert_eq!(event(|_| 7), ["event-flood"]);
    assert!(event(|round| round).is_empty(), "each with another message, and work beside it");
}

#[test]
fn owners_that_garbage_collection_does_not_accept_are_told() {
    let mut world = World::new();
    world.reconcile(|one| {
        let mut write = WriteFact { owners: owned(true), ..create(&child("Role", "web"), 1) };
        write.object.namespace = Some("other".to_owned());
        one.writes = vec![write];
    });
    assert_eq!(world.loud(), ["cross-namespace-owner"]);
    let mut world = World::new();
    world.seen(&cr("a"), shelf(1, json!({})));
    world.reconcile(|one| {
        let mut owners = owned(true);
        owners[0].uid = "never-was".to_owned();
        one.writes = vec![WriteFact { owners, ..create(&child("Role", "web"), 1) }];
    });
    world.unrelated(&child("Role", "web"));
    world.wait(7);
    assert_eq!(world.loud(), ["owner-gone"]);
}

#[test]
fn objects_of_others_are_left_alone() {
    let run = |change: fn(&mut WriteFact)| {
        let mut world = World::new();
        world.reconcile(|one| {
            let mut write = update(&child("ConfigMap", "theirs"), "", vec![field(".data.x", 1, 2)]);
            write.before = vec!["kubectl-create".to_owned()];
            change(&mut write);
            one.writes = vec![write];
        });
        world.loud()
    };
    assert_eq!(run(|_| {}), ["foreign-object"]);
    assert!(run(|write| write.tied = true).is_empty());
    assert!(run(|write| write.before = vec!["manager".to_owned()]).is_empty());
    assert!(run(|write| write.verb = WriteVerb::Apply).is_empty());
    assert!(run(|write| write.object.gvk.kind = "Namespace".to_owned()).is_empty());
}

#[test]
fn two_custom_resources_do_not_write_one_object() {
    let mut world = World::new();
    for round in 0..4 {
        world.reconcile(|one| {
            one.object = cr(if round % 2 == 0 { "a" } else { "b" });
            one.causes = own();
            let (old, new) = if round % 2 == 0 { (2, 1) } else { (1, 2) };
            let write = update(&child("ConfigMap", "shared"), "", vec![field(".data.x", old, new)]);
            one.writes = vec![WriteFact { tied: true, ..write }];
        });
    }
    assert_eq!(world.loud(), ["name-collision"]);
}

#[test]
fn what_is_sent_in_vain_is_told() {
    let run = |change: fn(&mut WriteFact), later: bool| {
        let mut world = World::new();
        world.reconcile(|one| {
            let mut write = update(&cr("a"), "", Vec::new());
            change(&mut write);
            one.writes = vec![write];
        });
        if later {
            world.reconcile(|one| {
                one.writes = vec![update(&cr("a"), "status", vec![field(".status.x", 1, 2)])];
            });
        }
        world.wait(7);
        world.loud()
    };
    assert_eq!(run(|write| write.pruned = ".spec.colour".to_owned(), false), ["pruned-field"]);
    assert_eq!(run(|write| write.lost = ".status.phase".to_owned(), false), ["lost-status"]);
    assert!(run(|write| write.lost = ".status.phase".to_owned(), true).is_empty());
    assert_eq!(run(|write| write.beside_status = ".metadata.finalizers".to_owned(), false), ["lost-status"]);
}

#[test]
fn a_status_that_is_behind_is_told_at_rest() {
    let run = |status: Value, requeue: Option<Duration>| {
        let mut world = World::new();
        world.seen(&cr("a"), shelf(3, json!({})));
        world.reconcile(|one| {
            one.requeue = requeue;
            one.writes = vec![update(&cr("a"), "status", vec![field(".status.x", 1, 2)])];
        });
        world.seen(&cr("a"), shelf(3, json!({"status": status})));
        world.wait(13);
        world.rules()
    };
    let told = |severity| vec![("no-observed-generation".to_owned(), severity)];
    assert_eq!(run(json!({"observedGeneration": 2}), None), told(FindingSeverity::Warning));
    assert_eq!(run(json!({"phase": "Ready"}), None), told(FindingSeverity::Hint));
    assert!(run(json!({"observedGeneration": 3}), None).is_empty());
    let conditions = |observed: &[i64]| {
        let one = |observed: &i64| json!({"type": "Ready", "status": "True", "observedGeneration": observed});
        json!({"conditions": observed.iter().map(one).collect::<Vec<Value>>()})
    };
    assert!(run(conditions(&[2, 3]), None).is_empty(), "a condition says it");
    assert_eq!(run(conditions(&[1, 2]), None), told(FindingSeverity::Warning));
    assert!(run(json!({"observedGeneration": 2}), Some(Duration::from_secs(5))).is_empty(), "it waits");
}

#[test]
fn writes_that_change_nothing_are_a_hint() {
    let run = |change: fn(&mut WriteFact)| {
        let mut world = World::new();
        for _ in 0..6 {
            world.reconcile(|one| {
                let mut write =
                    WriteFact { unchanged: true, ..update(&child("ConfigMap", "a-data"), "", Vec::new()) };
                change(&mut write);
                one.writes = vec![write];
            });
        }
        world.rules()
    };
    assert_eq!(run(|_| {}), [("write-without-change".to_owned(), FindingSeverity::Hint)]);
    assert!(run(|write| write.verb = WriteVerb::Apply).is_empty());
    assert!(run(|write| (write.deleting, write.held) = (true, false)).is_empty(), "the last finalizer");
}

#[test]
fn a_change_that_no_reconcile_saw_is_told_once_one_writes_because_of_it() {
    let run = |waits: i64, writes: bool| {
        let mut world = World::new();
        world.reconcile(|_| {});
        world.seen(&cr("a"), shelf(1, json!({})));
        world.seen(&cr("a"), shelf(1, json!({"annotations": {"size": "3"}})));
        world.now += waits;
        world.reconcile(|one| {
            one.causes = vec![woken(
                child("Deployment", "web"),
                WatchEvent::Modified,
                Some("kube-controller-manager"),
                false,
            )];
            if writes {
                one.writes =
                    vec![update(&child("Deployment", "web"), "", vec![field(".spec.replicas", 1, 3)])];
            }
        });
        world.loud()
    };
    assert_eq!(run(8000, true), ["event-dropped"]);
    assert!(run(100, true).is_empty(), "it came at once");
    assert!(run(8000, false).is_empty(), "nothing came of it");
}

#[test]
fn a_value_of_another_client_is_not_put_back() {
    let run = |change: fn(&mut WriteFact)| {
        let mut world = World::new();
        world.reconcile(|one| {
            let carried = FieldFact {
                carried: true,
                other: "kubectl-scale".to_owned(),
                ..field(".spec.replicas", 5, 3)
            };
            let mut write = update(&child("Deployment", "theirs"), "", vec![carried]);
            write.verb = WriteVerb::Patch;
            write.tied = true;
            change(&mut write);
            one.writes = vec![write];
        });
        world.loud()
    };
    assert_eq!(run(|_| {}), ["lost-update"]);
    assert!(run(|write| write.verb = WriteVerb::Apply).is_empty());
    assert!(run(|write| write.fields[0].carried = false).is_empty(), "drift is put back");
    assert!(run(|write| write.fields[0].other = "manager".to_owned()).is_empty(), "its own earlier write");
}

#[test]
fn a_slow_reconcile_is_told_where_others_wait() {
    let run = |took: i64, queued: u64| {
        let mut world = World::new();
        world.reconcile(|one| {
            one.object = cr("slow");
            one.ended = at(took);
        });
        world.now = took + 1;
        world.reconcile(|one| one.queued = Duration::from_secs(queued));
        world.loud()
    };
    assert_eq!(run(12_000, 11), ["blocked-worker"]);
    assert!(run(12_000, 0).is_empty());
    assert_eq!(run(31_000, 0), ["blocked-worker"]);
}

#[test]
fn a_name_that_leaves_little_room_is_a_hint_once_two_show_it() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.reconcile(|one| {
            one.object = cr(name);
            let child = child("StatefulSet", &format!("{name}-application-controller"));
            one.writes = vec![WriteFact { tied: true, ..create(&child, 1) }];
        });
    }
    assert_eq!(world.rules(), [("name-budget".to_owned(), FindingSeverity::Hint)]);
    assert!(world.opened()[0].why.contains("more than 29 characters"), "{}", world.opened()[0].why);
}

#[test]
fn what_is_ignored_is_not_told() {
    let told = |name: &str| {
        let ignored =
            crate::Ignored { rule: "panic".to_owned(), name: name.to_owned(), ..crate::Ignored::default() };
        let mut world =
            World { findings: Findings::ignoring(vec![ignored]), now: 0, next: 0, told: Vec::new() };
        world.reconcile(|one| one.panic = "boom".to_owned());
        world.loud().len()
    };
    assert_eq!((told("a"), told(""), told("b")), (0, 0, 1));
}

#[test]
fn each_rule_has_words_of_its_own() {
    let mut ids: Vec<&str> = crate::RULES.iter().map(|rule| rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), crate::RULES.len());
    for rule in crate::RULES {
        // One is told by lines of the log.
        let judged = rule.judge.is_some() || rule.absent.is_some() || rule.id == "kind-missing";
        assert!(judged, "{}", rule.id);
        for text in [rule.what, rule.when, rule.never, rule.fix] {
            assert!(!text.is_empty() && text.ends_with('.'), "{}: {text}", rule.id);
        }
    }
}

#[test]
fn the_page_of_the_docs_is_what_the_rules_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings.md");
    let there = std::fs::read_to_string(path).unwrap();
    let (head, _) = there.split_once("\n## ").unwrap();
    let pages =
        crate::RULES.iter().map(|rule| format!("\n## {}: {}\n\n{}", rule.id, rule.name, crate::page(rule)));
    let wanted = format!("{head}{}", pages.collect::<String>());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &wanted).unwrap();
    } else {
        assert!(
            there == wanted,
            "docs/findings.md is not what the rules say; UPDATE_GOLDEN=1 cargo test writes it anew"
        );
    }
}

#[test]
fn a_deprecated_api_is_told_once_with_the_words_of_the_server() {
    let run = |text: &str| {
        let mut world = World::new();
        for name in ["a", "b"] {
            world.reconcile(|one| {
                let target = format!("endpoints/{name}");
                let (verb, text) = ("create".to_owned(), text.to_owned());
                one.warnings = vec![WarningFact { verb, target, text, place: None }];
            });
        }
        world.rules()
    };
    let words = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
    assert_eq!(run(words), [("deprecated-api".to_owned(), FindingSeverity::Warning)]);
    assert_eq!(run("spec.nodeName: non-functional in v1.27+").len(), 1);
    assert!(run("unknown field \"spec.foo\"").is_empty());
}
