//! Candidates of each list, gathered when it opens: actions, objects, kinds, files, namespaces, contexts.

use crate::act::programs;
use crate::view::ViewState;
use opdev_event::{Destination, FaultRule, PodFailure, words};
use opdev_object::meta::ObjectKey;
use opdev_panes::keys::action::{Do, Seek};
use opdev_panes::lists::candidates::{Index, Item, What};
use opdev_panes::theme::Theme;
use opdev_state::State;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything that can be chosen from a list.
pub(crate) fn gather(what: What, view: &ViewState, state: &State) -> Index {
    let mut index = Index::default();
    match what {
        What::Palette => {
            actions(&mut index, view);
            own_commands(&mut index, view);
            for namespace in namespaces(state) {
                index.push(Item::Namespace(Some(namespace.clone())), &format!("ns {namespace}"), "namespace");
            }
            index.push(Item::Namespace(None), "ns all namespaces", "namespace");
            for to in destinations(state) {
                let text = format!("ctx {}", name_of(&to));
                index.push(Item::Context(to), &text, "context cluster");
            }
            for theme in Theme::names() {
                index.push(Item::Theme(theme), &format!("theme {theme}"), "colours");
            }
            kinds(&mut index, state, true);
            tables(&mut index, state);
        }
        What::Jump => {
            kinds(&mut index, state, false);
            samples(&mut index, state);
            actions(&mut index, view);
            objects(&mut index, view, state);
            for reconcile in state.history.all().iter().rev() {
                let causes = words::causes(&reconcile.causes);
                let outcome = words::outcome(reconcile.outcome);
                let text =
                    format!("#{} {} {outcome}  {causes}", reconcile.id, words::short_ref(&reconcile.object));
                index.push(
                    Item::Reconcile { id: reconcile.id, object: reconcile.object.key() },
                    &text,
                    "reconcile",
                );
            }
            for path in state.files.iter().flat_map(|files| files.iter()) {
                index.push(Item::File(path.clone()), &format!("file {path}"), "open edit");
            }
        }
        What::Namespace => {
            index.push(Item::Namespace(None), "all namespaces", "");
            for namespace in namespaces(state) {
                index.push(Item::Namespace(Some(namespace.clone())), &namespace, "");
            }
        }
        What::Context => {
            for to in destinations(state) {
                let here = if is_here(&to, state) { "  · here" } else { "" };
                let text = format!("{}{here}", name_of(&to));
                index.push(Item::Context(to), &text, "");
            }
        }
        What::Theme => {
            for theme in Theme::names() {
                index.push(Item::Theme(theme), theme, "");
            }
        }
        What::Commands => own_commands(&mut index, view),
        What::Ports => {
            let seen = view.subject(state);
            for pair in seen.map(|seen| programs::ports(seen)).unwrap_or_default() {
                let (local, remote) = pair.split_once(':').unwrap_or((&pair, &pair));
                let text = format!("{pair}  127.0.0.1:{local} to its port {remote}");
                index.push(Item::Port(pair.clone()), &text, "");
            }
        }
        What::Failure => {
            for how in PodFailure::ALL {
                index.push(Item::Failure(Some(how)), &format!("{}: it {}", how.word(), how.told()), "");
            }
            index.push(Item::Failure(None), "recover: take the failure away", "");
        }
        What::Disturbance => {
            let mut known: Vec<(FaultRule, &str)> =
                state.disturbed.iter().map(|rule| (rule.clone(), "is on; enter ends it")).collect();
            for (text, about) in FaultRule::PRESETS {
                if let Ok(rule) = text.parse::<FaultRule>()
                    && !state.disturbed.contains(&rule)
                {
                    known.push((rule, about));
                }
            }
            for (rule, about) in known {
                let sign = if state.disturbed.contains(&rule) { "● " } else { "" };
                let text = format!("{sign}{rule}  {about}");
                index.push(Item::Disturb(Some(rule)), &text, "");
            }
            if !state.disturbed.is_empty() {
                index.push(Item::Disturb(None), "end all faults", "none off disturb inject");
            }
        }
    }
    index
}

/// The commands of the user's own settings.
fn own_commands(index: &mut Index, view: &ViewState) {
    for (at, own) in view.keys.own.iter().enumerate() {
        let key = own.key.as_ref().map_or_else(String::new, |key| format!("  ({key})"));
        let command = &own.command;
        let text = format!("{}{key}  runs {}", command.name, command.run.join(" "));
        index.push(Item::Own(at), &text, "own command");
        index.also_named(&command.name);
    }
}

fn actions(index: &mut Index, view: &ViewState) {
    for action in view.keys.map.rows() {
        // The palette in the palette leads nowhere.
        if action.does == Do::Seek(Seek::Palette) {
            continue;
        }
        let other = format!("{} {}", action.id, action.aliases.join(" "));
        index.push(Item::Action(action.does), &format!("{}  {}", action.title, action.about), &other);
        for name in action.aliases.iter().chain([&action.id, &action.title]) {
            index.named(name);
        }
    }
}

/// More than these are not sorted: who looks for one of so many types a part of its name.
const SORTED: usize = 5_000;

fn objects(index: &mut Index, view: &ViewState, state: &State) {
    index.items.reserve(state.objects.len());
    index.at.reserve(state.objects.len());
    index.text.reserve(state.objects.len() * 48);
    let mut text = String::new();
    let mut push = |key: &Arc<ObjectKey>| {
        text.clear();
        text.push_str(&key.kind);
        text.push(' ');
        if let Some(namespace) = &key.namespace {
            text.push_str(namespace);
            text.push('/');
        }
        text.push_str(&key.name);
        index.push(Item::Object(Arc::clone(key)), &text, "");
    };
    // Custom resources first; they are sorted already.
    view.resources.table.all().for_each(|seen| push(&seen.key));
    let others = state.objects.keys().filter(|key| !state.is_custom(&key.group, &key.kind));
    if state.objects.len() - state.objects.custom_len() > SORTED {
        // In one go: to look at a key for the first time takes the longest.
        return others.for_each(push);
    }
    let mut others: Vec<&Arc<ObjectKey>> = others.collect();
    others.sort();
    others.into_iter().for_each(push);
}

/// The kinds that the API server lists. A name that an action or a list of custom resources has stays with
/// that.
fn tables(index: &mut Index, state: &State) {
    for kind in state.served.iter().flat_map(|kinds| kinds.iter()) {
        let (name, group) = (kind.full_name(), &kind.gvk.group);
        let group = if group.is_empty() { String::new() } else { format!(", {group}") };
        let text = format!("{}  table of {}{group}", kind.plural, kind.gvk.kind);
        let other = format!("{} {}", kind.singular, kind.short_names.join(" "));
        index.push(Item::Table(name.clone()), &text, &other);
        for name in [&name, &kind.plural, &kind.singular, &kind.gvk.kind].into_iter().chain(&kind.short_names)
        {
            if !name.is_empty() {
                index.also_named(name);
            }
        }
    }
}

/// The kinds of objects that are known. Where `only_custom`, and the API server has said what it lists, those
/// of other kinds are among its tables.
fn kinds(index: &mut Index, state: &State, only_custom: bool) {
    let mut count: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for kind in state.kinds() {
        count.insert((&kind.gvk.group, &kind.gvk.kind), 0);
    }
    count.extend(state.objects.census().kinds().map(|(group, kind, n)| ((group, kind), n)));
    for ((group, kind), count) in count {
        let known = state.kinds().iter().find(|known| known.gvk.group == group && known.gvk.kind == kind);
        if only_custom && known.is_none() && state.served.is_some() {
            continue;
        }
        let plural = known.map(|known| known.plural.clone()).filter(|plural| !plural.is_empty());
        let plural = plural.unwrap_or_else(|| plural_of(&kind.to_lowercase()));
        let (group, item) = (group.to_owned(), kind.to_owned());
        index.push(Item::Kind { group, kind: item }, &format!("{plural}  kind {kind}, {count} objects"), "");
        index.also_named(&plural);
        index.also_named(kind);
        for short in short_names(kind) {
            index.also_named(short);
        }
    }
}

fn plural_of(kind: &str) -> String {
    match kind {
        "endpoints" => kind.to_owned(),
        _ if kind.ends_with('s') || kind.ends_with('x') || kind.ends_with("ch") => format!("{kind}es"),
        _ if kind.ends_with('y') && !kind.ends_with("ay") && !kind.ends_with("ey") => {
            format!("{}ies", &kind[..kind.len() - 1])
        }
        _ => format!("{kind}s"),
    }
}

/// The short names that kubectl knows.
fn short_names(kind: &str) -> &'static [&'static str] {
    match kind {
        "Pod" => &["po"],
        "Service" => &["svc"],
        "Deployment" => &["deploy", "dp"],
        "ReplicaSet" => &["rs"],
        "StatefulSet" => &["sts"],
        "DaemonSet" => &["ds"],
        "ConfigMap" => &["cm"],
        "Secret" => &["sec"],
        "ServiceAccount" => &["sa"],
        "PersistentVolumeClaim" => &["pvc"],
        "Ingress" => &["ing"],
        "HorizontalPodAutoscaler" => &["hpa"],
        "CronJob" => &["cj"],
        _ => &[],
    }
}

fn samples(index: &mut Index, state: &State) {
    for sample in state.samples() {
        index.push(Item::Sample(sample.path.clone()), &format!("apply {}", sample.path), "sample file");
    }
    for kind in state.kinds().iter().filter(|kind| !kind.source.is_empty()) {
        let (group, name) = (kind.gvk.group.clone(), kind.gvk.kind.clone());
        let text = format!("kind {}  is fed by {}", kind.gvk.kind, kind.source);
        index.push(Item::Source { group, kind: name }, &text, "chart reconciler source");
    }
}

/// The namespaces that are seen anywhere.
fn namespaces(state: &State) -> Vec<String> {
    let mut names: BTreeSet<&str> = state.objects.census().namespaces().collect();
    if let Some(started) = state.started.as_ref().filter(|started| !started.namespace.is_empty()) {
        names.insert(&started.namespace);
    }
    names.into_iter().map(str::to_owned).collect()
}

/// Where one can go: the contexts of the kubeconfig, and the embedded control plane.
fn destinations(state: &State) -> Vec<Destination> {
    let contexts = state.started.iter().flat_map(|started| &started.contexts);
    let mut all: Vec<_> = contexts.map(|name| Destination::Context { name: name.clone() }).collect();
    all.push(Destination::Embedded);
    all
}

fn name_of(to: &Destination) -> String {
    match to {
        Destination::Context { name } => name.clone(),
        Destination::Embedded => to.to_string(),
    }
}

/// Returns true if opdev works there now.
pub(crate) fn is_here(to: &Destination, state: &State) -> bool {
    let Some(started) = &state.started else { return false };
    match to {
        Destination::Embedded => started.cluster.embedded,
        Destination::Context { name } => !started.cluster.embedded && started.cluster.name == *name,
    }
}
