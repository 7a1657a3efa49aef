//! A kind that the program asks for and the cluster does not have.

use crate::facts::missing_kinds::MissingKind;
use crate::rule::Rule;
use crate::rule::Told;
use jiff::Timestamp;
use opdev_event::FindingSeverity::{Error, Hint};
use opdev_object::meta::{Gvk, ObjectRef};

pub(crate) static RULE: Rule = Rule {
    id: "kind-missing",
    severity: Error,
    name: "kind is missing",
    what: "The program watches or reads a kind that no CRD of the cluster serves. A controller that watches it does not \
           start, and after two minutes controller-runtime ends the program. A reconcile that reads it fails.",
    when: "controller-runtime says for the second time that a watched kind is missing, or that a reconcile failed by it: a \
           hint. An error once the program has ended because of it.",
    never: "kinds that a program only looks for; kinds that opdev installs from the project's modules.",
    fix: "Apply the CRD. Or watch the kind only where the cluster has it: ask the manager's RESTMapper before the controller \
          is set up.",
    storm: false,
    judge: None,
    absent: None,
};

/// The program says it once more; with the seconds that it has waited where it has ended by it.
pub(crate) fn told(kind: &MissingKind, ended: Option<i64>, at: Timestamp) -> Told {
    let name = format!("{}.{}", kind.kind, kind.group);
    let object = ObjectRef {
        gvk: Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        namespace: None,
        name: name.clone(),
        uid: None,
    };
    let why = match ended {
        Some(seconds) => {
            format!("the program has waited {seconds} s for {name}, which no CRD serves, and has ended")
        }
        None => format!("the program asks for {name} again and again, and no CRD serves it"),
    };
    let severity = if ended.is_some() { Error } else { Hint };
    Told { severity, ..Told::new(&RULE, &object, at, 0).say(name, why) }
}
