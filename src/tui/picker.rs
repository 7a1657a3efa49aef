//! Lists to choose from by typing a few letters: the palette of all actions, the jump to anything, namespaces,
//! contexts, themes. What can be chosen is gathered when the list opens; `finding` does what was chosen.

use super::action::Seek;
use super::action::{ACTIONS, Do};
use super::candidates::{Census, Index, Item, Picker, Remembered, What};
use super::keys::Key;
use super::programs;
use super::theme::Theme;
use super::view::ViewState;
use crate::event::{Destination, FaultRule, PodFailure, words};
use crate::state::State;
use crate::tui::dialog::{Answer, Scale};
use crate::tui::enabled::enabled;
use crossterm::event::KeyCode;
use opdev_object::meta::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many commands are kept to be brought back.
const KEPT: usize = 50;

impl Picker {
    /// Opens a list; the jump goes on where it was left.
    pub(super) fn open(what: What, view: &mut ViewState, state: &State) -> Self {
        let of = match &view.jump_index {
            Some(known) if what == What::Jump && known.fits(state) => Arc::clone(&known.index),
            Some(_) | None => {
                let census = newest_census(view, state);
                Arc::new(gather(what, &census, view, state).done())
            }
        };
        if what == What::Jump {
            view.jump_index = Some(Remembered::of(&of, state));
        }
        let (typed, index) = match what {
            What::Jump => view.last_jump.clone(),
            What::Palette
            | What::Namespace
            | What::Context
            | What::Theme
            | What::Failure
            | What::Disturbance
            | What::Commands
            | What::Ports => (String::new(), 0),
        };
        let mut picker = Picker {
            what,
            resumed: !typed.is_empty(),
            typed,
            index: 0,
            before: None,
            has_kinds: state.served.is_some(),
            recalled: None,
            of,
            matched: Arc::default(),
            best: Arc::default(),
        };
        picker.search(false);
        picker.index = index.min(picker.best.len().saturating_sub(1));
        picker
    }

    pub(super) fn key(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer {
        let answer = self.answer(key, view, state);
        if matches!(answer, Answer::Stay) {
            self.preview(view);
        }
        answer
    }

    /// A theme shows while it is selected.
    fn preview(&mut self, view: &mut ViewState) {
        let selected = self.best.get(self.index).map(|at| self.of.item(*at));
        match selected {
            Some(Item::Theme(name)) => {
                self.before.get_or_insert(view.theme);
                view.theme = Theme::named(name).unwrap_or(view.theme);
            }
            Some(_) | None => view.theme = self.before.take().unwrap_or(view.theme),
        }
    }

    fn answer(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer {
        let last = self.best.len().saturating_sub(1);
        let step = |key: Key| match key.code {
            KeyCode::Down | KeyCode::Tab => Some(1),
            KeyCode::Up | KeyCode::BackTab => Some(-1),
            KeyCode::Char('n' | 'j') if key.ctrl => Some(1),
            KeyCode::Char('p' | 'k') if key.ctrl => Some(-1),
            KeyCode::PageDown => Some(10),
            KeyCode::PageUp => Some(-10),
            _ => None,
        };
        if self.what == What::Palette && self.recall(key, view) {
            return Answer::Stay;
        }
        if let Some(step) = step(key) {
            self.index = self.index.saturating_add_signed(step).min(last);
            self.resumed = false;
            return Answer::Stay;
        }
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) => {
                view.theme = self.before.take().unwrap_or(view.theme);
                self.remember(view);
                return Answer::Close;
            }
            (KeyCode::Enter, _) if self.what == What::Palette && self.has_argument(view, state) => {
                self.remember(view);
                return self.with_argument(view, state);
            }
            (KeyCode::Enter, _) if self.what == What::Ports && self.is_own_port() => {
                return view.choose(Item::Port(self.typed.clone()), state);
            }
            (KeyCode::Enter, _) if self.what == What::Disturbance && self.is_rule() => {
                return disturb(&self.typed, view, state);
            }
            (KeyCode::Enter, _) if self.what == What::Palette && self.means_table(state) => {
                self.remember(view);
                let (word, filter) = self.table_words();
                view.open_typed_table(&word, &filter, state);
                return Answer::Close;
            }
            (KeyCode::Enter, _) => {
                let Some(at) = self.best.get(self.index) else { return Answer::Stay };
                let item = self.of.item(*at).clone();
                self.remember(view);
                return view.choose(item, state);
            }
            (KeyCode::Backspace, _) => {
                self.resumed = false;
                self.typed.pop();
                self.search(false);
            }
            (KeyCode::Char('u' | 'w'), None) if key.ctrl => {
                self.typed.clear();
                self.search(false);
            }
            (_, Some(c)) if self.typed.len() < 200 => self.push(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Answer::Stay
    }

    /// Whether what was typed is a port of its own, and no part of the selected one.
    fn is_own_port(&self) -> bool {
        let Some(at) = self.best.get(self.index) else { return true };
        let is_number = self.typed.trim().split(':').all(|part| part.parse::<u16>().is_ok());
        let means =
            |pair: &str| pair == self.typed.trim() || pair.split(':').any(|part| part == self.typed.trim());
        is_number && matches!(self.of.item(*at), Item::Port(pair) if !means(pair))
    }

    /// Up brings back what was typed before, down what was typed after that; false where the key is for the list.
    fn recall(&mut self, key: Key, view: &ViewState) -> bool {
        let older = match key.code {
            KeyCode::Up if self.index == 0 && (self.typed.is_empty() || self.recalled.is_some()) => {
                self.recalled.map_or(0, |at| at + 1)
            }
            KeyCode::Down if self.recalled.is_some_and(|at| at > 0) => self.recalled.unwrap_or(1) - 1,
            _ => {
                self.recalled = None;
                return false;
            }
        };
        let Some(text) = view.commands.iter().rev().nth(older) else { return self.recalled.is_some() };
        (self.typed, self.recalled) = (text.clone(), Some(older));
        self.search(false);
        true
    }

    /// The word and the argument of what was typed, where the word takes one.
    fn argument(&self) -> Option<(&str, &str)> {
        let (word, rest) = self.typed.trim().split_once(char::is_whitespace)?;
        matches!(word, "scale" | "ns" | "namespace" | "disturb" | "save" | "forward")
            .then(|| (word, rest.trim()))
    }

    /// Whether what was typed says all: a number to scale to, or a namespace by its whole name.
    fn has_argument(&self, view: &ViewState, state: &State) -> bool {
        match self.argument() {
            Some(("scale" | "disturb" | "save" | "forward", _)) => true,
            Some((_, name)) => {
                let known = view.census.as_ref().is_some_and(|census| census.namespaces.contains(name));
                name != "all" && (known || self.matching() == 0) && state.started.is_some()
            }
            None => false,
        }
    }

    /// A kind and a filter, as they were typed.
    fn table_words(&self) -> (String, String) {
        let typed = self.typed.trim();
        let (word, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        (word.to_owned(), rest.trim().to_owned())
    }

    /// Whether what was typed is a kind with a filter, or nothing that the palette knows: then the API server may know it.
    fn means_table(&self, state: &State) -> bool {
        let (word, filter) = self.table_words();
        let is_kind = || state.served.iter().flat_map(|kinds| kinds.iter()).any(|kind| kind.is_called(&word));
        let could_be = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
        !word.is_empty() && could_be && (self.best.is_empty() || (!filter.is_empty() && is_kind()))
    }

    fn with_argument(&self, view: &mut ViewState, state: &State) -> Answer {
        match self.argument() {
            Some(("scale", number)) => match (number.parse::<i32>(), enabled(Do::Scale, view, state)) {
                (Ok(replicas @ 0..), Ok(())) => {
                    return Answer::Ask(Scale::of(&view.targets(state), state).request(replicas));
                }
                (_, Err(why)) => view.message = Some(format!("scale: {why}")),
                (Ok(_) | Err(_), Ok(())) => {
                    view.message = Some(format!("scale: {number} is no number of replicas"));
                }
            },
            Some(("disturb", rule)) => return disturb(rule, view, state),
            Some(("forward", pair)) => return view.choose(Item::Port(pair.to_owned()), state),
            Some(("save", path)) => match enabled(Do::Save, view, state) {
                Ok(()) => return Answer::Save(path.to_owned()),
                Err(why) => view.message = Some(format!("save: {why}")),
            },
            Some((_, name)) => return view.choose(Item::Namespace(Some(name.to_owned())), state),
            None => {}
        }
        Answer::Close
    }

    /// Whether what was typed is meant as a rule of its own: no rule of the list is like it.
    fn is_rule(&self) -> bool {
        let typed = self.typed.trim();
        !typed.is_empty() && (self.matching() == 0 || typed.parse::<FaultRule>().is_ok())
    }

    fn remember(&self, view: &mut ViewState) {
        if self.what == What::Palette && !self.typed.trim().is_empty() {
            view.commands.retain(|known| *known != self.typed);
            view.commands.push(self.typed.clone());
            if view.commands.len() > KEPT {
                view.commands.remove(0);
            }
        }
        if self.what == What::Jump {
            view.last_jump = (self.typed.clone(), self.index);
        }
    }
}

/// Asks for a rule as it was typed; what is wrong with it is said.
fn disturb(typed: &str, view: &mut ViewState, state: &State) -> Answer {
    match (typed.parse::<FaultRule>(), enabled(Do::Disturb, view, state)) {
        (Ok(rule), Ok(())) => return view.choose(Item::Disturb(Some(rule)), state),
        (_, Err(why)) | (Err(why), Ok(())) => view.message = Some(format!("disturb: {why}")),
    }
    Answer::Close
}

/// The newest one.
fn newest_census(view: &mut ViewState, state: &State) -> Arc<Census> {
    let known = view.census.take().filter(|known| state.objects.changes().same(&known.changes));
    let census = known.unwrap_or_else(|| Arc::new(Census::of(state)));
    view.census = Some(Arc::clone(&census));
    census
}

fn gather(what: What, census: &Census, view: &ViewState, state: &State) -> Index {
    let mut index = Index::default();
    match what {
        What::Palette => {
            actions(&mut index);
            own_commands(&mut index, view);
            for namespace in namespaces(census, state) {
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
            kinds(&mut index, census, state, true);
            tables(&mut index, state);
        }
        What::Jump => {
            kinds(&mut index, census, state, false);
            files(&mut index, state);
            actions(&mut index);
            objects(&mut index, view, state);
            for pass in state.history.all().iter().rev() {
                let causes = words::causes(&pass.causes);
                let outcome = words::outcome(pass.outcome);
                let text = format!("#{} {} {outcome}  {causes}", pass.id, words::short_ref(&pass.object));
                index.push(Item::Reconcile { id: pass.id, object: pass.object.key() }, &text, "reconcile");
            }
        }
        What::Namespace => {
            index.push(Item::Namespace(None), "all namespaces", "");
            for namespace in namespaces(census, state) {
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
                state.disturbed.iter().map(|rule| (rule.clone(), "takes it away")).collect();
            for (text, about) in FaultRule::PRESETS {
                if let Ok(rule) = text.parse::<FaultRule>()
                    && !state.disturbed.contains(&rule)
                {
                    known.push((rule, about));
                }
            }
            for (rule, about) in known {
                let sign = if state.disturbed.contains(&rule) { "✓ " } else { "" };
                let text = format!("{sign}{rule}  {about}");
                index.push(Item::Disturb(Some(rule)), &text, "");
            }
            if !state.disturbed.is_empty() {
                index.push(Item::Disturb(None), "end: disturb nothing any more", "none off");
            }
        }
    }
    index
}

/// The commands of the user's own settings.
fn own_commands(index: &mut Index, view: &ViewState) {
    for (at, own) in view.own_commands.iter().enumerate() {
        let key = own.key.as_ref().map_or_else(String::new, |key| format!("  ({key})"));
        let command = &own.command;
        let text = format!("{}{key}  runs {}", command.name, command.run.join(" "));
        index.push(Item::Own(at), &text, "own command");
        index.also_named(&command.name);
    }
}

fn actions(index: &mut Index) {
    for action in ACTIONS {
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
    // Custom resources first; they are sorted already.
    let custom = view.lists.table.all().map(|seen| &seen.key);
    let mut others: Vec<&Arc<ObjectKey>> =
        state.objects.keys().filter(|key| !state.is_custom(&key.group, &key.kind)).collect();
    if others.len() <= SORTED {
        others.sort();
    }
    index.items.reserve(state.objects.len());
    index.at.reserve(state.objects.len());
    index.text.reserve(state.objects.len() * 48);
    let mut text = String::new();
    for key in custom.chain(others) {
        text.clear();
        text.push_str(&key.kind);
        text.push(' ');
        if let Some(namespace) = &key.namespace {
            text.push_str(namespace);
            text.push('/');
        }
        text.push_str(&key.name);
        index.push(Item::Object(Arc::clone(key)), &text, "");
    }
}

/// The kinds that the API server lists. A name that an action or a list of custom resources has stays with that.
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

/// The kinds of objects that are known. Where `only_custom`, and the API server has said what it lists, those of other
/// kinds are among its tables.
fn kinds(index: &mut Index, census: &Census, state: &State, only_custom: bool) {
    let mut count: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for kind in state.kinds() {
        count.insert((&kind.gvk.group, &kind.gvk.kind), 0);
    }
    count.extend(census.kinds.iter().map(|((group, kind), n)| ((group.as_str(), kind.as_str()), *n)));
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

fn files(index: &mut Index, state: &State) {
    for sample in state.samples() {
        index.push(Item::File(sample.path.clone()), &format!("file {}", sample.path), "sample apply");
    }
    for kind in state.kinds().iter().filter(|kind| !kind.source.is_empty()) {
        let (group, name) = (kind.gvk.group.clone(), kind.gvk.kind.clone());
        let text = format!("file {}  feeds {}", kind.source, kind.gvk.kind);
        index.push(Item::Source { group, kind: name }, &text, "chart reconciler source");
    }
}

/// The namespaces that are seen anywhere.
fn namespaces(census: &Census, state: &State) -> Vec<String> {
    let mut names: BTreeSet<&str> = census.namespaces.iter().map(String::as_str).collect();
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

/// Whether opdev works there now.
pub(super) fn is_here(to: &Destination, state: &State) -> bool {
    let Some(started) = &state.started else { return false };
    match to {
        Destination::Embedded => started.cluster.embedded,
        Destination::Context { name } => !started.cluster.embedded && started.cluster.name == *name,
    }
}
