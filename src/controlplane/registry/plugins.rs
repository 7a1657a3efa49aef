//! The smaller admission plugins that are on by default in the real server: what they set on an object that
//! is created, and what they refuse. In its order; LimitRanger is in `create`, PodSecurity in `pod_security`,
//! webhooks and policies in `admit`. The texts are those of the real server.

use super::Registry;
use super::context::Context;
use super::strategy::{Write, strategy_of};
use opdev_admission::authorization::Attributes;
use opdev_apimachinery::classes::{DEFAULT_INGRESS_CLASS, DEFAULT_STORAGE_CLASS, default_class};
use opdev_apimachinery::contract::View as _;
use opdev_apimachinery::contract::exec::ExecAnswer;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata, quantity};
use opdev_storage::{Key, Stored};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const PRIORITY_CLASSES: &str = "scheduling.k8s.io/priorityclasses";
const RUNTIME_CLASSES: &str = "node.k8s.io/runtimeclasses";
const STORAGE_CLASSES: &str = "storage.k8s.io/storageclasses";
const INGRESS_CLASSES: &str = "networking.k8s.io/ingressclasses";

fn forbidden(resource: &Resource, object: &Value, why: &str) -> Status {
    Status::forbidden(&resource.group, &resource.plural, metadata::text(object, "name"), why)
}

/// A field as a map; it is made where it is none.
fn map_of<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    if !value[field].is_object() {
        value[field] = json!({});
    }
    value[field].as_object_mut()
}

impl Registry {
    /// A registry in which an `exec` in a simulated pod has answers.
    pub fn with_exec_answers(mut self, answers: Vec<ExecAnswer>) -> Self {
        self.exec_answers = answers;
        self
    }

    /// Answers of an `exec` in simulated pods.
    pub fn exec_answers(&self) -> &[ExecAnswer] {
        &self.exec_answers
    }

    /// Plugins that decide whether pods need the ServiceAccount that they name.
    pub fn with_strict_pods(mut self, strict: bool) -> Self {
        self.strict_pods = strict;
        self
    }

    /// Runs the admission plugins on a pod that is to be created: they set fields, or refuse it.
    pub(super) fn admit_new_pod(&self, resource: &Resource, pod: &mut Value) -> Result<(), Status> {
        self.check_account(resource, pod)?;
        self.set_priority(resource, pod)?;
        self.set_by_runtime_class(resource, pod)
    }

    /// The plugin DefaultStorageClass: a claim that names no class gets the default one.
    pub(super) fn set_default_storage_class(&self, claim: &mut Value) {
        let annotated = "volume.beta.kubernetes.io/storage-class";
        if claim["spec"]["storageClassName"].is_null()
            && claim["metadata"]["annotations"].get(annotated).is_none()
        {
            let classes = self.list(STORAGE_CLASSES, None);
            if let Some(class) = default_class(classes, &DEFAULT_STORAGE_CLASS) {
                claim["spec"]["storageClassName"] = class["metadata"]["name"].clone();
            }
        }
    }

    /// The plugin DefaultIngressClass: an Ingress that names no class gets the default one.
    pub(super) fn set_default_ingress_class(&self, ingress: &mut Value) {
        if ingress["spec"]["ingressClassName"].is_null()
            && ingress["metadata"]["annotations"].get("kubernetes.io/ingress.class").is_none()
        {
            let classes = self.list(INGRESS_CLASSES, None);
            if let Some(class) = default_class(classes, &DEFAULT_INGRESS_CLASS) {
                ingress["spec"]["ingressClassName"] = class["metadata"]["name"].clone();
            }
        }
    }

    /// The plugin ServiceAccount, where pods are to be that strict: the account of a pod has to be there. A
    /// controller makes the one called `default` in every namespace, and a static pod has none.
    fn check_account(&self, resource: &Resource, pod: &Value) -> Result<(), Status> {
        let account = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default();
        let is_static = pod["metadata"]["annotations"].get("kubernetes.io/config.mirror").is_some();
        if !self.strict_pods || matches!(account, "" | "default") || is_static {
            return Ok(());
        }
        let namespace = metadata::text(pod, "namespace");
        if self.store.get("serviceaccounts", &Key::new(namespace, account)).is_some() {
            return Ok(());
        }
        let why = format!(
            "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
        );
        Err(forbidden(resource, pod, &why))
    }

    /// The class with this name; without a name the default one, where there is one.
    fn priority_class(&self, name: &str) -> Option<Arc<Value>> {
        if !name.is_empty() {
            return self.store.get(PRIORITY_CLASSES, &Key::new("", name)).map(|class| class.value());
        }
        let classes = self.store.list(PRIORITY_CLASSES, None).items;
        let default = classes.iter().map(Stored::value).filter(|class| class["globalDefault"] == true);
        // There may be several after a race.
        default.min_by_key(|class| class["value"].as_i64())
    }

    /// The plugin Priority: a pod's class decides its priority.
    fn set_priority(&self, resource: &Resource, pod: &mut Value) -> Result<(), Status> {
        let name = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
        let class = self.priority_class(&name);
        if class.is_none() && !name.is_empty() {
            let why = format!("no PriorityClass with name {name} was found");
            return Err(forbidden(resource, pod, &why));
        }
        let (priority, preemption) = match &class {
            Some(class) => (class["value"].as_i64().unwrap_or(0), class["preemptionPolicy"].as_str()),
            None => (0, Some("PreemptLowerPriority")),
        };
        if let Some(said) = pod["spec"]["priority"].as_i64().filter(|said| *said != priority) {
            let why = format!(
                "the integer value of priority ({said}) must not be provided in pod spec; priority admission controller \
                 computed {priority} from the given PriorityClass name"
            );
            return Err(forbidden(resource, pod, &why));
        }
        if let (Some(said), Some(preemption)) = (pod["spec"]["preemptionPolicy"].as_str(), preemption)
            && said != preemption
        {
            let why = format!(
                "the string value of PreemptionPolicy ({said}) must not be provided in pod spec; priority admission \
                 controller computed {preemption} from the given PriorityClass name"
            );
            return Err(forbidden(resource, pod, &why));
        }
        let Some(spec) = map_of(pod, "spec") else { return Ok(()) };
        if let Some(class) = &class {
            spec.insert("priorityClassName".to_owned(), class["metadata"]["name"].clone());
        }
        spec.insert("priority".to_owned(), Value::from(priority));
        if let Some(preemption) = preemption {
            spec.insert("preemptionPolicy".to_owned(), Value::from(preemption));
        }
        Ok(())
    }

    /// The plugin RuntimeClass: what running a pod costs beside its containers, and where it may run.
    fn set_by_runtime_class(&self, resource: &Resource, pod: &mut Value) -> Result<(), Status> {
        let Some(name) = pod["spec"]["runtimeClassName"].as_str().map(str::to_owned) else {
            if pod["spec"]["overhead"].is_object() {
                let why =
                    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                return Err(forbidden(resource, pod, why));
            }
            return Ok(());
        };
        let Some(class) = self.store.get(RUNTIME_CLASSES, &Key::new("", &name)) else {
            let why = format!("pod rejected: RuntimeClass {name:?} not found");
            return Err(forbidden(resource, pod, &why));
        };
        let class = class.value();
        let fixed = &class["overhead"]["podFixed"];
        let said = pod["spec"]["overhead"].clone();
        let is_said = said.as_object().is_some_and(|said| !said.is_empty());
        if class["overhead"].is_object() {
            if is_said && said != *fixed {
                let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
                return Err(forbidden(resource, pod, why));
            }
            if fixed.is_object() {
                pod["spec"]["overhead"] = fixed.clone();
            }
        } else if said.is_object() {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            return Err(forbidden(resource, pod, why));
        }
        let scheduling = &class["scheduling"];
        for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
            let own = &pod["spec"]["nodeSelector"][key];
            if !own.is_null() && own != value {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let why = format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                    text(value),
                    text(own)
                );
                return Err(forbidden(resource, pod, &why));
            }
            if let Some(selector) = map_of(&mut pod["spec"], "nodeSelector") {
                selector.insert(key.clone(), value.clone());
            }
        }
        if let Some(more) = scheduling["tolerations"].as_array() {
            let own = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
            pod["spec"]["tolerations"] =
                Value::Array(merged(&own.into_iter().chain(more.iter().cloned()).collect::<Vec<_>>()));
        }
        Ok(())
    }

    /// Asks the plugins that only look, once an object is valid. `old` is what it replaces.
    ///
    /// # Errors
    /// What one of them refuses.
    pub(super) fn check_plugins(
        &self,
        ctx: &mut Context,
        (resource, part): Write<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        self.check_pod_security(ctx, (resource, part), object, old)?;
        (strategy_of(resource).admit)(self, ctx, (resource, part), object, old)
    }

    /// The plugin Priority: only one class is the default one.
    pub(super) fn check_default_priority(
        &self,
        resource: &Resource,
        object: &Value,
        exists: bool,
    ) -> Result<(), Status> {
        if object["globalDefault"] != true {
            return Ok(());
        }
        let Some(class) = self.priority_class("") else { return Ok(()) };
        let name = metadata::text(&class, "name");
        if exists && name == metadata::text(object, "name") {
            return Ok(());
        }
        let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
        Err(forbidden(resource, object, &why))
    }

    /// The plugin PersistentVolumeClaimResize: only claims of a class that allows it may grow.
    pub(super) fn check_resize(
        &self,
        resource: &Resource,
        object: &Value,
        old: &Value,
    ) -> Result<(), Status> {
        let size = |claim: &Value| {
            let said = claim.pointer("/spec/resources/requests/storage").and_then(Value::as_str);
            said.and_then(quantity::nano).unwrap_or(0)
        };
        if size(object) <= size(old) {
            return Ok(());
        }
        if old["status"]["phase"] != "Bound" {
            return Err(forbidden(resource, object, "Only bound persistent volume claims can be expanded"));
        }
        let name = |claim: &Value| {
            let annotated = &claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
            annotated.as_str().or(claim["spec"]["storageClassName"].as_str()).unwrap_or_default().to_owned()
        };
        let class = self.store.get(STORAGE_CLASSES, &Key::new("", &name(object)));
        let allows = class.is_some_and(|class| class.value()["allowVolumeExpansion"] == true);
        if name(object) == name(old) && allows {
            return Ok(());
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                   support resize";
        Err(forbidden(resource, object, why))
    }

    /// The plugins CertificateApproval and CertificateSigning: whoever approves or signs has to have the
    /// right to do that for the signer.
    pub(super) fn check_signer(
        &self,
        ctx: &Context,
        (resource, part): (&Resource, Part),
        object: &Value,
        old: &Value,
    ) -> Result<(), Status> {
        let verb = if part == Part::Approval { "approve" } else { "sign" };
        let same = |field: &str| object["status"][field] == old["status"][field];
        if part == Part::Status && same("certificate") && same("conditions") {
            return Ok(());
        }
        let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
        if self.may_for_signer(ctx, verb, signer) {
            return Ok(());
        }
        let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
        Err(forbidden(resource, object, &why))
    }

    /// The writer of a signer's trust bundle needs the right to attest for that signer.
    pub(super) fn check_attester(
        &self,
        ctx: &Context,
        resource: &Resource,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let signer = object["spec"]["signerName"].as_str().unwrap_or_default();
        let same = old.is_some_and(|old| old["spec"] == object["spec"]);
        if signer.is_empty() || same || self.may_for_signer(ctx, "attest", signer) {
            return Ok(());
        }
        Err(forbidden(resource, object, &format!("user not permitted to attest for signerName {signer:?}")))
    }

    /// Returns true if the user has the verb for this signer, or for all signers of its domain.
    fn may_for_signer(&self, ctx: &Context, verb: &str, signer: &str) -> bool {
        let all = signer.split_once('/').map(|(domain, _)| format!("{domain}/*"));
        let may = |name: &str| {
            let wanted = Attributes::on(verb, "certificates.k8s.io", "signers", "", name);
            self.allows_all(&ctx.user) || self.authorize(&ctx.user, &wanted).is_ok()
        };
        may(signer) || all.is_some_and(|all| may(&all))
    }
}

/// Tolerations without those that another one covers.
fn merged(all: &[Value]) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let later = all[at + 1..].iter().any(|other| other != one && covers(other, one));
        if !later && !kept.iter().any(|other| covers(other, one)) {
            kept.push(one.clone());
        }
    }
    kept
}

/// Returns true if whatever the second toleration tolerates the first one does, too.
fn covers(wide: &Value, narrow: &Value) -> bool {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let equal = |field: &str| text(wide, field) == text(narrow, field);
    let exists = text(wide, "operator") == "Exists";
    if wide == narrow {
        return true;
    }
    let key = equal("key") || (text(wide, "key").is_empty() && exists);
    let effect = equal("effect") || text(wide, "effect").is_empty();
    let seconds = |value: &Value| value["tolerationSeconds"].as_i64();
    let long = match (text(wide, "effect").as_str(), seconds(wide), seconds(narrow)) {
        ("NoExecute", Some(wide), narrow) => narrow.is_some_and(|narrow| wide >= narrow),
        _ => true,
    };
    let value = match text(wide, "operator").as_str() {
        "Exists" => true,
        "" | "Equal" => text(narrow, "operator") == "Equal" && equal("value"),
        _ => false,
    };
    key && effect && long && value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_that_others_cover_go() {
        let (all, one) =
            (json!({"operator": "Exists"}), json!({"key": "a", "operator": "Equal", "value": "x"}));
        let short = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10});
        let long = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20});
        assert_eq!(merged(&[one.clone(), all.clone()]), std::slice::from_ref(&all));
        assert_eq!(merged(&[all.clone(), one.clone()]), [all]);
        assert_eq!(merged(&[short, long.clone(), one.clone()]), [long, one.clone()]);
        assert_eq!(merged(&[one.clone(), one.clone()]), [one]);
    }
}
