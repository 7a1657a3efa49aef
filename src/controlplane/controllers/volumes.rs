//! PersistentVolumeClaims: a simulated provisioner binds them. A claim in use is kept until its pods are
//! gone, a volume until its claim is. Never stores anything.

use super::conditions::{self, NewCondition};
use super::fields::{self, deleting, list, name, put, text, uid, with_status};
use super::quantity;
use crate::contract::{Actor, Change, Controller, Key, Note, NoteKind, Observed, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::attributes::Lookup;
use opdev_apimachinery::classes::{DEFAULT_STORAGE_CLASS, default_class};
use opdev_apimachinery::version;
use opdev_object::meta;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Binds claims to volumes, and takes volumes back.
pub(crate) struct Binder;

/// Keeps claims that pods use, and says which ones none does.
pub(crate) struct ClaimProtection;

/// Keeps volumes that claims are bound to.
pub(crate) struct VolumeProtection;

const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";
const CLASSES: &str = "storage.k8s.io/storageclasses";
const PROVISIONER: &str = "opdev.dev/simulated";
const STANDARD: &str = "standard";
const PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

impl Controller for Binder {
    fn name(&self) -> &'static str {
        "persistentvolume-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:persistent-volume-binder")
    }

    fn seeds(&self) -> Vec<Key> {
        vec![Key::new(CLASSES, None, STANDARD)]
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        let open = || {
            let claims = view.list(CLAIMS, None);
            let unbound = claims.iter().filter(|claim| text(claim, "/status/phase") != "Bound");
            unbound.map(|claim| Key::of_object(CLAIMS, claim)).collect::<Vec<_>>()
        };
        match change.resource.as_str() {
            CLAIMS => {
                let mut keys: Vec<_> = change.key().into_iter().collect();
                let volume = change.object().map(|claim| text(claim, "/spec/volumeName"));
                keys.extend(volume.filter(|v| !v.is_empty()).map(|v| Key::new(VOLUMES, None, v)));
                keys
            }
            VOLUMES => {
                let mut keys: Vec<_> = change.key().into_iter().collect();
                let claim = change.object().and_then(|volume| volume.pointer("/spec/claimRef"));
                keys.extend(claim.map(|c| Key::new(CLAIMS, Some(text(c, "/namespace")), text(c, "/name"))));
                keys.extend(open());
                keys
            }
            CLASSES => open(),
            _ => Vec::new(),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, _now: Timestamp) -> Sync {
        let writes = match (key.resource.as_str(), key.read(view)) {
            (CLASSES, None) => vec![standard_class()],
            (CLAIMS, Some(claim)) if !deleting(&claim) => bind(view, &claim),
            (VOLUMES, Some(volume)) => keep_volume(view, &volume),
            _ => Vec::new(),
        };
        Sync { writes, ..Sync::default() }
    }
}

fn standard_class() -> Write {
    Write::Create {
        resource: CLASSES.into(),
        object: json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": STANDARD, "annotations": {(DEFAULT_STORAGE_CLASS[0]): "true"}},
            "provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
            "allowVolumeExpansion": true,
        }),
    }
}

fn tell(claim: &Value, kind: NoteKind, reason: &str, message: String) -> Write {
    Write::Record(Note {
        regarding: fields::reference(claim),
        kind,
        reason: reason.to_owned(),
        message,
        component: None,
        host: None,
    })
}

fn bind(view: &dyn View, claim: &Value) -> Vec<Write> {
    let volume_name = text(claim, "/spec/volumeName");
    if !volume_name.is_empty() {
        return match view.get(VOLUMES, None, volume_name) {
            Some(volume) if text(&volume, "/spec/claimRef/uid").is_empty() => {
                vec![take(claim, &volume), choose(claim, volume_name, None)]
            }
            Some(volume) if text(&volume, "/spec/claimRef/uid") == uid(claim) => bound(claim, &volume),
            Some(_) => {
                let message = format!("volume \"{volume_name}\" already bound to a different claim.");
                told_pending(view, claim, NoteKind::Warning, "FailedBinding", message)
            }
            None if text(claim, "/status/phase") == "Bound" => lost(claim),
            None => pending(claim),
        };
    }
    let Some(class_name) = claim.pointer("/spec/storageClassName").and_then(Value::as_str) else {
        // Claims without a class get the default one, also later.
        return match default_class(view.list(CLASSES, None), &DEFAULT_STORAGE_CLASS) {
            Some(class) => vec![patch(CLAIMS, claim, json!({"spec": {"storageClassName": name(&class)}}))],
            None => pending(claim),
        };
    };
    if let Some(volume) = matching(view, claim, class_name) {
        return vec![take(claim, &volume), choose(claim, name(&volume), None)];
    }
    if class_name.is_empty() || claim.pointer("/spec/selector").is_some() {
        let message = "no persistent volumes available for this claim and no storage class is set".to_owned();
        return told_pending(view, claim, NoteKind::Normal, "FailedBinding", message);
    }
    let Some(class) = view.get(CLASSES, None, class_name) else {
        let message = format!("storageclass.storage.k8s.io \"{class_name}\" not found");
        return told_pending(view, claim, NoteKind::Warning, "ProvisioningFailed", message);
    };
    provision(claim, &class)
}

fn patch(resource: &str, object: &Value, patch: Value) -> Write {
    Write::Patch {
        resource: resource.to_owned(),
        namespace: meta::namespace(object).map(str::to_owned),
        name: name(object).to_owned(),
        patch,
    }
}

fn claim_reference(claim: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta::namespace(claim),
        "name": name(claim), "uid": uid(claim), "resourceVersion": meta::resource_version(claim),
    })
}

fn take(claim: &Value, volume: &Value) -> Write {
    patch(VOLUMES, volume, json!({"spec": {"claimRef": claim_reference(claim)}}))
}

fn choose(claim: &Value, volume: &str, provisioner: Option<&str>) -> Write {
    let mut annotations = json!({
        "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
    });
    if let Some(provisioner) = provisioner {
        for key in
            ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"]
        {
            put(&mut annotations, &format!("/{}", fields::step(key)), provisioner.into());
        }
    }
    patch(CLAIMS, claim, json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}))
}

/// The smallest volume a user made available that the claim can have.
fn matching(view: &dyn View, claim: &Value, class: &str) -> Option<Arc<Value>> {
    let wanted = quantity::value(claim.pointer("/spec/resources/requests/storage"))?;
    let modes = list(claim, "/spec/accessModes");
    let size = |volume: &Value| quantity::value(volume.pointer("/spec/capacity/storage")).unwrap_or(0);
    view.list(VOLUMES, None)
        .into_iter()
        .filter(|volume| {
            let reserved = volume.pointer("/spec/claimRef").filter(|reference| !reference.is_null());
            reserved.is_none_or(|reference| {
                text(reference, "/name") == name(claim)
                    && Some(text(reference, "/namespace")) == meta::namespace(claim)
                    && (text(reference, "/uid").is_empty() || text(reference, "/uid") == uid(claim))
            })
        })
        .filter(|volume| !deleting(volume) && text(volume, "/spec/storageClassName") == class)
        .filter(|volume| size(volume) >= wanted)
        .filter(|volume| modes.iter().all(|mode| list(volume, "/spec/accessModes").contains(mode)))
        .min_by_key(|volume| size(volume))
}

fn provision(claim: &Value, class: &Value) -> Vec<Write> {
    let volume = format!("pvc-{}", uid(claim));
    let policy = match text(class, "/reclaimPolicy") {
        "" => "Delete",
        policy => policy,
    };
    let provisioner = text(class, "/provisioner");
    let modes = list(claim, "/spec/accessModes").to_vec();
    let object = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": volume, "annotations": {"pv.kubernetes.io/provisioned-by": provisioner}},
        "spec": {
            "accessModes": modes,
            "capacity": {"storage": claim.pointer("/spec/resources/requests/storage")},
            "claimRef": claim_reference(claim),
            "hostPath": {"path": format!("/var/lib/opdev/{volume}"), "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": name(class),
            "volumeMode": claim.pointer("/spec/volumeMode").cloned().unwrap_or_else(|| "Filesystem".into()),
        },
    });
    let message = format!("Successfully provisioned volume {volume}");
    vec![
        Write::Create { resource: VOLUMES.into(), object },
        tell(claim, NoteKind::Normal, "ProvisioningSucceeded", message),
        choose(claim, &volume, Some(provisioner)),
    ]
}

fn bound(claim: &Value, volume: &Value) -> Vec<Write> {
    let mut status = fields::status(claim);
    // Afterwards it is the driver that says which class the volume has.
    let class = text(volume, "/spec/volumeAttributesClassName");
    if text(claim, "/status/phase") == "Pending" && !class.is_empty() {
        status.insert("currentVolumeAttributesClassName".into(), class.into());
    }
    status.insert("phase".into(), "Bound".into());
    status.insert("accessModes".into(), list(volume, "/spec/accessModes").to_vec().into());
    status.insert("capacity".into(), Value::Object(fields::map_copy(volume, "/spec/capacity")));
    write_status(CLAIMS, claim, status)
}

fn write_status(resource: &str, object: &Value, status: Map<String, Value>) -> Vec<Write> {
    if status == fields::status(object) {
        return Vec::new();
    }
    vec![Write::UpdateStatus { resource: resource.to_owned(), object: with_status(object, status) }]
}

fn pending(claim: &Value) -> Vec<Write> {
    let mut status = fields::status(claim);
    status.insert("phase".into(), "Pending".into());
    write_status(CLAIMS, claim, status)
}

/// Writes why the claim stays pending, once.
fn told_pending(view: &dyn View, claim: &Value, kind: NoteKind, reason: &str, message: String) -> Vec<Write> {
    let said = view
        .list("events", meta::namespace(claim))
        .iter()
        .any(|event| text(event, "/involvedObject/uid") == uid(claim) && text(event, "/message") == message);
    let mut writes = pending(claim);
    if !said {
        writes.push(tell(claim, kind, reason, message));
    }
    writes
}

fn lost(claim: &Value) -> Vec<Write> {
    let mut status = fields::status(claim);
    status.insert("phase".into(), "Lost".into());
    let mut writes = write_status(CLAIMS, claim, status);
    if !writes.is_empty() {
        let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!".to_owned();
        writes.push(tell(claim, NoteKind::Warning, "ClaimLost", message));
    }
    writes
}

/// Phase of a volume; one whose claim is gone is released, and deleted when its policy says so.
fn keep_volume(view: &dyn View, volume: &Value) -> Vec<Write> {
    let reference = volume.pointer("/spec/claimRef").filter(|reference| !reference.is_null());
    let phase = match reference {
        None => "Available",
        Some(reference) if text(reference, "/uid").is_empty() => "Available",
        Some(reference) => {
            let claim = view.get(CLAIMS, Some(text(reference, "/namespace")), text(reference, "/name"));
            if claim.is_some_and(|claim| uid(&claim) == text(reference, "/uid")) {
                "Bound"
            } else if text(volume, "/spec/persistentVolumeReclaimPolicy") == "Delete" && !deleting(volume) {
                return vec![Write::Delete {
                    resource: VOLUMES.into(),
                    namespace: None,
                    name: name(volume).to_owned(),
                    uid: Some(uid(volume).to_owned()),
                    propagation: None,
                    grace: None,
                }];
            } else {
                "Released"
            }
        }
    };
    let mut status = fields::status(volume);
    status.insert("phase".into(), phase.into());
    write_status(VOLUMES, volume, status)
}

impl Controller for ClaimProtection {
    fn name(&self) -> &'static str {
        "persistentvolumeclaim-protection-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:pvc-protection-controller")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        match change.resource.as_str() {
            CLAIMS => change.key().into_iter().collect(),
            // In between, the claims of a pod stay what they are.
            "pods" if change.gone() || ended(change) || began(view, change) => {
                let pod = change.object();
                let volumes = pod.map(|pod| list(pod, "/spec/volumes")).unwrap_or_default();
                volumes
                    .iter()
                    .map(|volume| text(volume, "/persistentVolumeClaim/claimName"))
                    .filter(|claim| !claim.is_empty())
                    .map(|claim| Key::new(CLAIMS, pod.and_then(|pod| pod.namespace()), claim))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let Some(claim) = key.read(view) else { return Sync::done() };
        let mut sync = protect((CLAIMS, &claim), PROTECTION, || in_use(view, &claim));
        // The gate PersistentVolumeClaimUnusedSinceTime is on since 1.37. The finalizer comes first: its
        // write leads here again.
        if version::minor() >= 37 && !deleting(&claim) && sync.writes.is_empty() {
            sync.writes.extend(unused(&claim, in_use(view, &claim), now));
        }
        sync
    }
}

impl Controller for VolumeProtection {
    fn name(&self) -> &'static str {
        "persistentvolume-protection-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:pv-protection-controller")
    }

    fn keys(&self, _view: &dyn View, change: &Change) -> Vec<Key> {
        match change.resource.as_str() {
            VOLUMES => change.key().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, _now: Timestamp) -> Sync {
        let Some(volume) = key.read(view) else { return Sync::done() };
        protect((VOLUMES, &volume), VOLUME_PROTECTION, || text(&volume, "/status/phase") == "Bound")
    }
}

/// Puts a finalizer on an object that stays, and takes it off one that goes and is not in use any more.
fn protect((resource, object): (&str, &Value), finalizer: &str, in_use: impl FnOnce() -> bool) -> Sync {
    let finalizers = meta::finalizers(object);
    let protected = finalizers.contains(&finalizer);
    let wanted: Vec<_> = if !deleting(object) && !protected {
        finalizers.into_iter().chain([finalizer]).collect()
    } else if deleting(object) && protected && !in_use() {
        finalizers.into_iter().filter(|found| *found != finalizer).collect()
    } else {
        return Sync::done();
    };
    let wanted = if wanted.is_empty() { Value::Null } else { json!(wanted) };
    let write = patch(resource, object, json!({"metadata": {"finalizers": wanted}}));
    Sync { writes: vec![write], ..Sync::default() }
}

/// Returns true for a new pod where there are claims; elsewhere nobody has to read it.
fn began(view: &dyn View, change: &Change) -> bool {
    let claims = |pod: &Observed| view.select_keys(CLAIMS, pod.namespace(), &Lookup::All, &|_| true);
    change.before.is_none() && change.after.as_ref().is_some_and(|pod| !claims(pod).is_empty())
}

fn ended(change: &Change) -> bool {
    change.object().is_some_and(|pod| pod.attributes().pod_finished())
}

/// Says of a claim whether a pod uses it, and since when none does.
fn unused(claim: &Value, in_use: bool, now: Timestamp) -> Vec<Write> {
    let (status, reason) = if in_use { ("False", "PodUsingPVC") } else { ("True", "NoPodsUsingPVC") };
    let mut whole = fields::status(claim);
    conditions::set(&mut whole, NewCondition { kind: "Unused", status, reason, message: "" }, now);
    write_status(CLAIMS, claim, whole)
}

fn in_use(view: &dyn View, claim: &Value) -> bool {
    let left = view.select("pods", meta::namespace(claim), &Lookup::All, &|pod| !pod.pod_finished());
    left.iter().any(|pod| {
        let mut volumes = list(pod, "/spec/volumes").iter();
        volumes.any(|volume| text(volume, "/persistentVolumeClaim/claimName") == name(claim))
    })
}
