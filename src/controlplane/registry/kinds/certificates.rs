//! Signing requests, and the reviews that are answered and forgotten.

use crate::prepare::take;
use crate::strategy::{Post, Selectable, Strategy};
use opdev_apimachinery::identity::User;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{ResourceRules, names};
use opdev_apis::defaults::sub;
use opdev_apis::table::{Printer, cluster};
use opdev_validation::certificates;
use serde_json::{Value, json};

const REVIEW: Strategy = Strategy { post: Post::Review, ..Strategy::COMMON };

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "certificates.k8s.io/certificatesigningrequests",
        rules: ResourceRules { validate_name: names::path_segment, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::SIGNING_REQUEST, cluster::signing_request)),
        selectable: Selectable::fields(&["spec.signerName"]),
        set_requester,
        prepare_update: |_, part, object, current| {
            // The request and its author stay.
            if matches!(part, Part::Main | Part::Scale) {
                take(object, current, "spec");
            }
        },
        admit: |registry, ctx, (resource, part), object, old| match (part, old) {
            (Part::Approval | Part::Status, Some(old)) => {
                registry.check_signer(ctx, (resource, part), object, old)
            }
            _ => Ok(()),
        },
        ..Strategy::COMMON
    },
    Strategy {
        id: "certificates.k8s.io/clustertrustbundles",
        // A name is judged with the signer's.
        rules: ResourceRules {
            validate_name: |_| Vec::new(),
            unconditional_update: false,
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(cluster::TRUST_BUNDLE, cluster::trust_bundle)),
        selectable: Selectable::fields(&["spec.signerName"]),
        validate: |_, object, old, causes| certificates::trust_bundle(object, old, causes),
        admit: |registry, ctx, (resource, part), object, old| match part {
            Part::Main => registry.check_attester(ctx, resource, object, old),
            _ => Ok(()),
        },
        ..Strategy::COMMON
    },
    Strategy {
        id: "certificates.k8s.io/podcertificaterequests",
        rules: ResourceRules { unconditional_update: false, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::POD_CERTIFICATE, cluster::pod_certificate)),
        selectable: Selectable::fields(&["spec.signerName", "spec.podName", "spec.nodeName"]),
        initial_status: |_| Some(json!({})),
        validate: |_, object, old, causes| {
            if old.is_none() {
                certificates::pod_request(&object["spec"], causes);
            }
        },
        unchanging: &["spec"],
        ..Strategy::COMMON
    },
    Strategy { id: "authentication.k8s.io/selfsubjectreviews", ..REVIEW },
    Strategy { id: "authentication.k8s.io/tokenreviews", ..REVIEW },
    Strategy { id: "authorization.k8s.io/localsubjectaccessreviews", ..REVIEW },
    Strategy { id: "authorization.k8s.io/selfsubjectaccessreviews", ..REVIEW },
    Strategy { id: "authorization.k8s.io/selfsubjectrulesreviews", ..REVIEW },
    Strategy { id: "authorization.k8s.io/subjectaccessreviews", ..REVIEW },
];

/// A signing request says who made it, whatever it says itself.
fn set_requester(object: &mut Value, user: &User) {
    let spec = sub(object, "spec");
    let given = |there: bool, value: Value| if there { value } else { Value::Null };
    let fields = [
        ("username", given(!user.name.is_empty(), json!(user.name))),
        ("uid", given(!user.uid.is_empty(), json!(user.uid))),
        ("groups", given(!user.groups.is_empty(), json!(user.groups))),
        ("extra", given(!user.extra.is_empty(), json!(user.extra))),
    ];
    let Value::Object(spec) = spec else { return };
    for (name, value) in fields {
        spec.remove(name);
        if !value.is_null() {
            spec.insert(name.to_owned(), value);
        }
    }
}
