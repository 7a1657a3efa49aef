//! Calls of a script beside a chart around its release: `before`, which may hold it back, `after`, and the
//! events that it wants recorded. Patches are applied as those of programs are, but stay when they are no
//! longer asked for.

use super::ChartScript;
use crate::engine::Engine;
use crate::history::Stored;
use crate::objects::Wanted;
use crate::objects::compare::{covers, normalize};
use crate::objects::writes::{bare, manager_of, updated};
use crate::recorder;
use crate::recorder::Note;
use crate::verdict::Fault;
use anyhow::{Context, anyhow};
use opdev_event::{Action, Level, ObjectChange, mask};
use opdev_object::meta::{self, Gvk};
use opdev_script::contract::{ChartFunction, Patch, Read};
use opdev_sources::chart_options::OnHookError;
use serde_json::{Value, json};
use std::sync::Arc;

/// The work of a reconcile on its release, as scripts are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    Install,
    Upgrade,
    #[default]
    Reconcile,
}

impl Doing {
    fn word(self) -> &'static str {
        match self {
            Doing::Install => "install",
            Doing::Upgrade => "upgrade",
            Doing::Reconcile => "reconcile",
        }
    }
}

/// A release as scripts see it.
pub fn told(stored: &Stored) -> Value {
    let release = &stored.release;
    json!({
        "name": release.name,
        "namespace": release.namespace,
        "revision": release.version,
        "status": release.info.status.word(),
        "values": release.config,
        "manifest": release.manifest,
        "notes": release.info.notes,
    })
}

impl Engine {
    /// Asks `before`. False where it holds the release back.
    pub(crate) async fn ask_before(
        &mut self,
        doing: Doing,
        values: &Value,
        deployed: Option<&Stored>,
    ) -> Result<bool, Fault> {
        self.doing = doing;
        let about = json!({"values": values, "release": deployed.map(told), "action": doing.word()});
        self.ask_hook(ChartFunction::Before, about).await?;
        Ok(self.done.waiting.is_none())
    }

    /// Asks `after`, once all went well.
    pub(crate) async fn ask_after(&mut self, values: &Value) -> Result<(), Fault> {
        let release = self.done.deployed.as_ref().map(|deployed| {
            json!({"name": self.name, "namespace": self.namespace, "revision": deployed.revision,
                "status": "deployed", "values": values, "manifest": deployed.manifest, "notes": deployed.notes})
        });
        let about = json!({"values": values, "release": release, "action": self.doing.word()});
        self.ask_hook(ChartFunction::After, about).await
    }

    async fn ask_hook(&mut self, function: ChartFunction, about: Value) -> Result<(), Fault> {
        let Some(script) = self.script.clone().filter(|script| script.has(function)) else { return Ok(()) };
        let done = match script.ask(function, vec![None, Some(about)]).await {
            Ok(answer) => {
                let desired = answer.desired;
                if let Some(after) = desired.requeue_after {
                    self.done.requeue = Some(self.done.requeue.map_or(after, |known| known.min(after)));
                }
                self.done.waiting = self.done.waiting.take().or(desired.waiting);
                self.put_patches(&script, &desired.patches).await.map_err(Fault::plain)
            }
            Err(fault) => Err(fault),
        };
        self.note(function.name());
        let Err(fault) = done else { return Ok(()) };
        if script.shadow || self.options.on_hook_error == OnHookError::Fail {
            let error = fault.error.context(format!("{} of {} failed", function.name(), script.path()));
            return Err(Fault { diagnostic: fault.diagnostic, ..Fault::irreconcilable(error) });
        }
        let line = format!("{} of {} failed: {:#}", function.name(), script.path(), fault.error);
        script.log(Level::Error, line.clone());
        self.say(line, Some("the release went on; `onHookError: fail` in opdev.yaml stops it"));
        Ok(())
    }

    async fn put_patches(&mut self, script: &Arc<ChartScript>, patches: &[Patch]) -> anyhow::Result<()> {
        if script.shadow {
            return Ok(());
        }
        for patch in patches {
            self.put_patch(script, patch).await?;
        }
        Ok(())
    }

    async fn put_patch(&mut self, script: &ChartScript, patch: &Patch) -> anyhow::Result<()> {
        let mut object = bare(&patch.object);
        let gvk = Gvk::of(&object).context("a patch has no apiVersion or no kind")?;
        let resource = self.api.resource(&gvk).await?;
        normalize(&mut object);
        if resource.namespaced && meta::namespace(&object).is_none() {
            meta::put(&mut object, &["metadata", "namespace"], self.namespace.as_str());
        }
        if patch.own && self.owner.namespace.as_deref() == meta::namespace(&object) {
            meta::put(&mut object, &["metadata", "ownerReferences"], json!([self.owner.reference()]));
        }
        let name = meta::name(&object).context("a patch has no metadata.name")?.to_owned();
        let namespace = meta::namespace(&object).map(str::to_owned);
        script.note_read(Read { gvk: gvk.clone(), namespace, name: Some(name), selector: String::new() });
        let wanted = Wanted::exactly(object, resource);
        let live = self.api.get(&wanted.at()).await?;
        if live.is_none() && !patch.create {
            return Err(anyhow!(
                "{} does not exist: a patch creates nothing, unless it says `create`",
                wanted.key()
            ));
        }
        let place = self.owner.namespace.as_deref().unwrap_or_default();
        let manager = format!("{}/{place}/{}", manager_of(&self.owner.gvk.kind), self.owner.name);
        let manager: String = manager.chars().take(128).collect();
        if live.as_ref().is_none_or(|live| !covers(live, &wanted.object)) {
            let after = self.api.apply(&wanted.at(), "", &wanted.object, live.as_ref(), &manager).await;
            let after = after.with_context(|| format!("could not patch {}", wanted.key()))?;
            let mut object = wanted.reference();
            object.uid = meta::uid(&after).map(str::to_owned);
            let change = match &live {
                None => Some(ObjectChange {
                    object,
                    action: Action::Created,
                    changes: Vec::new(),
                    taken_from: Vec::new(),
                }),
                Some(before) => updated(object, before, &after, &manager),
            };
            self.done.effects.changes.extend(change);
            self.done.effects.known.push((Arc::new(after), true));
        }
        let Some(status) = patch.object.get("status") else { return Ok(()) };
        if live.as_ref().and_then(|live| live.get("status")).is_some_and(|there| covers(there, status)) {
            return Ok(());
        }
        let object = json!({"apiVersion": wanted.object["apiVersion"], "kind": wanted.object["kind"],
            "metadata": {"name": wanted.object["metadata"]["name"]}, "status": status});
        let subresource = if wanted.resource.has_status { "status" } else { "" };
        let after = self.api.apply(&wanted.at(), subresource, &object, None, &manager).await;
        let after = after.with_context(|| format!("could not patch the status of {}", wanted.key()))?;
        self.done.effects.known.push((Arc::new(after), true));
        Ok(())
    }

    /// Records the events that the script asked for.
    pub async fn put_script_events(&mut self) {
        let Some(script) = self.script.clone().filter(|script| !script.shadow) else { return };
        for event in script.take_events() {
            self.record(&event.kind, &event.reason, &event.message).await;
        }
    }

    /// Records an event, as `onEvent` of the script wants it. One that cannot be written is no reason to stop.
    pub(crate) async fn record(&mut self, kind: &str, reason: &str, message: &str) {
        let mut note = (kind.to_owned(), reason.to_owned(), message.to_owned());
        if let Some(script) = self.script.clone().filter(|script| script.has(ChartFunction::OnEvent)) {
            let event = json!({"type": kind, "reason": reason, "message": message});
            match script.ask(ChartFunction::OnEvent, vec![Some(event), None]).await {
                Ok(answer) => {
                    // An event that onEvent records itself would never end.
                    script.take_events();
                    match &answer.value {
                        Value::Bool(false) => return,
                        Value::Object(fields) => {
                            let text = |key: &str, before: &str| {
                                fields.get(key).and_then(Value::as_str).unwrap_or(before).to_owned()
                            };
                            note = (text("type", kind), text("reason", reason), text("message", message));
                        }
                        Value::Null
                        | Value::Bool(true)
                        | Value::Number(_)
                        | Value::String(_)
                        | Value::Array(_) => {}
                    }
                }
                Err(fault) => {
                    let line = format!("onEvent of {} failed: {:#}", script.path(), fault.error);
                    script.log(Level::Error, line.clone());
                    self.say(line, None);
                }
            }
        }
        let (kind, reason, message) = note;
        // Those of the reconcile before, and what this reconcile has come to know.
        let message = mask::text(&message, &self.memory.secrets);
        let fresh = self.script.as_ref().map(|script| script.secrets_so_far()).unwrap_or_default();
        let message = mask::text(&message, &mask::known(fresh));
        let note = Note { kind: &kind, reason: &reason, message: &message };
        let api = self.api.as_operator();
        if let Err(error) = recorder::emit(&api, &self.owner, note, &mut self.memory.emitted).await {
            tracing::warn!(object = %self.owner.name, %error, "cannot write an event");
        }
    }
}
