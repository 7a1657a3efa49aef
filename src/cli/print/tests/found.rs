//! A finding of a rule.

use super::*;

pub(super) fn finding(ended: Option<FindingEnd>) -> RuleFinding {
    RuleFinding {
        id: 1,
        rule: "hot-loop".to_owned(),
        severity: FindingSeverity::Error,
        title: "hot loop: Deployment env".to_owned(),
        why: "each reconcile writes it again".to_owned(),
        fix: "write only what differs".to_owned(),
        object: object("Memcached"),
        about: Some(object("Deployment")),
        field: ".spec.replicas".to_owned(),
        controller: "memcached".to_owned(),
        first: at(),
        last: at(),
        times: 12,
        per_second: Some(17),
        reconciles: vec![3],
        since: 3,
        explains: vec!["conflict".to_owned()],
        storm: true,
        place: Some(Place { file: "web.go".to_owned(), line: 118, column: 0 }),
        ended,
    }
}
