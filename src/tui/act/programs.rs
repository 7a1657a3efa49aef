//! Programs that keys start: commands of the user's own settings, a shell in a pod, a forwarded port. What is
//! selected is put into their words here; `run` gives the terminal to those that want it, the inner loop runs
//! the others.

use super::writable::{connected, writes};
use crate::act::ask::ask;
use crate::command::Command;
use crate::dialog::Confirm;
use crate::view::ViewState;
use opdev_event::{ProgramRun, ProjectTask, Request, shell};
use opdev_object::meta::ObjectRef;
use opdev_panes::disabled::NotNow;
use opdev_panes::keys::user_command::OwnCommand;
use opdev_panes::kubectl;
use opdev_state::{Seen, State};
use serde_json::Value;
use std::sync::Arc;

/// The result of starting a program.
pub(crate) enum Start {
    /// It starts.
    Ask(Request),
    /// It asks first.
    Confirm(Confirm),
}

/// The words that stand for what is selected.
const WORDS: [&str; 8] = ["name", "ns", "namespace", "kind", "group", "version", "context", "kubeconfig"];

fn value(word: &str, object: Option<&ObjectRef>, state: &State) -> Option<String> {
    let started = state.started.as_ref();
    match word {
        "name" => object.map(|object| object.name.clone()),
        "ns" | "namespace" => {
            let of_object = object.and_then(|object| object.namespace.clone());
            of_object.or_else(|| started.map(|started| started.namespace.clone()))
        }
        "kind" => object.map(|object| object.gvk.kind.clone()),
        "group" => object.map(|object| object.gvk.group.clone()),
        "version" => object.map(|object| object.gvk.version.clone()),
        "context" => started.map(|started| match started.cluster.embedded {
            // As the kubeconfig of the embedded control plane calls it.
            true => "opdev".to_owned(),
            false => started.cluster.name.clone(),
        }),
        "kubeconfig" => started.map(|started| started.kubeconfig.clone().unwrap_or_default()),
        _ => None,
    }
}

/// A text in which something stands in the place of each word. Anything else in braces stays as it is.
fn filled(text: &str, mut put: impl FnMut(&str, &str) -> Result<String, NotNow>) -> Result<String, NotNow> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        let inside = &rest[at + 1..];
        let word = inside.find('}').map(|end| &inside[..end]).filter(|word| WORDS.contains(word));
        match word {
            Some(word) => {
                let text = put(word, &out)?;
                out.push_str(&text);
                rest = &inside[word.len() + 1..];
            }
            None => {
                out.push('{');
                rest = inside;
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Checks that a command of the user can start now; the error says why not.
pub(crate) fn possible(own: &OwnCommand, view: &ViewState, state: &State) -> Result<(), NotNow> {
    let command = &own.command;
    connected(state)?;
    if command.writes {
        writes(state)?;
    }
    let subject = view.subject(state);
    if !command.kinds.is_empty() {
        let kind = subject.map(|seen| seen.key.kind.as_str());
        let fits =
            kind.is_some_and(|kind| command.kinds.iter().any(|known| known.eq_ignore_ascii_case(kind)));
        if !fits {
            return Err(format!("it is for {}, and none is selected", command.kinds.join(", ")).into());
        }
    }
    let object = subject.map(|seen| &seen.object_ref);
    command.run.iter().try_for_each(|text| filled(text, |word, _| known(word, object, state)).map(|_| ()))
}

/// Starts a command of the user on what is selected.
///
/// # Errors
/// Why it cannot start now.
pub(crate) fn start(at: usize, view: &ViewState, state: &State) -> Result<Start, NotNow> {
    let own = view.keys.own.get(at).ok_or("the settings have no such command any more")?;
    possible(own, view, state)
        .map_err(|why| NotNow::Command { name: own.command.name.clone(), why: Box::new(why) })?;
    let command = &own.command;
    let object = view.subject(state).map(|seen| seen.object_ref.clone());
    let fill = |text: &String| filled(text, |word, _| known(word, object.as_ref(), state));
    let shown: Vec<String> = command.run.iter().map(fill).collect::<Result<_, _>>()?;
    let mut env = environment(state);
    let words = if command.shell {
        let (script, set) = script(&command.run.join(" "), object.as_ref(), state)?;
        env.extend(set);
        vec!["/bin/sh".to_owned(), "-c".to_owned(), script]
    } else {
        shown.clone()
    };
    let shown = if command.shell { shown.join(" ") } else { shell::line(&shown) };
    let program = ProgramRun {
        title: command.name.clone(),
        command: words,
        env,
        in_front: !command.background,
        pause: true,
        writes: command.writes,
    };
    let request = Request::from(ProjectTask::Run { program });
    if !command.confirm {
        return Ok(Start::Ask(request));
    }
    let title = format!("Run {shown}?");
    let objects = object.into_iter().collect();
    Ok(Start::Confirm(Confirm { title, objects, word: "Run", request, harmless: false }))
}

fn known(word: &str, object: Option<&ObjectRef>, state: &State) -> Result<String, NotNow> {
    value(word, object, state).ok_or_else(|| "nothing is selected".into())
}

/// A line for `sh`, and the variables it needs. What is selected is never a part of the line: names of
/// objects may hold what a shell would run, and the user's own quotes around a word would undo any of ours.
#[allow(clippy::type_complexity)]
fn script(
    text: &str,
    object: Option<&ObjectRef>,
    state: &State,
) -> Result<(String, Vec<(String, String)>), NotNow> {
    let mut set: Vec<(String, String)> = Vec::new();
    let line = filled(text, |word, before| {
        let name = format!("OPDEV_{}", word.to_uppercase());
        let value = known(word, object, state)?;
        if !set.iter().any(|(known, _)| *known == name) {
            set.push((name.clone(), value));
        }
        Ok(match open_quote(before) {
            None => format!("\"${{{name}}}\""),
            Some('"') => format!("${{{name}}}"),
            Some(_) => format!("'\"${{{name}}}\"'"),
        })
    })?;
    Ok((line, set))
}

/// The quote that is open at the end of a part of a line for `sh`.
fn open_quote(text: &str) -> Option<char> {
    let mut open = None;
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (open, c) {
            (None | Some('"'), '\\') => _ = letters.next(),
            (None, '\'' | '"') => open = Some(c),
            (Some(quote), _) if quote == c => open = None,
            (None | Some(_), _) => {}
        }
    }
    open
}

/// The variables that make kubectl and the like use the cluster that opdev uses.
fn environment(state: &State) -> Vec<(String, String)> {
    state.started.as_ref().map(|started| started.environment.clone()).unwrap_or_default()
}

/// Checks that there is a pod to open a shell in; the error says why not.
pub(crate) fn shell_in(view: &ViewState, state: &State) -> Result<Arc<Seen>, NotNow> {
    if connected(state)?.cluster.embedded {
        return Err("the embedded control plane plays the life of pods and runs no containers; there is no shell in one".into());
    }
    writes(state)?;
    let subject = view.subject(state).filter(|seen| seen.key.kind == "Pod" && seen.key.group.is_empty());
    subject.cloned().ok_or(NotNow::NotSelected { what: "pod" })
}

/// Opens a shell in the selected pod.
pub(crate) fn shell(view: &mut ViewState, state: &State) -> Vec<Command> {
    let Ok(pod) = shell_in(view, state) else { return Vec::new() };
    let request = shell_request(&pod, view, state);
    ask(view, request)
}

/// Says whether the user has commands of their own.
pub(crate) fn has_own(view: &ViewState, _: &State) -> Result<(), NotNow> {
    match view.keys.own.is_empty() {
        true => Err("your config.yaml has no commands; docs/keys.md shows how to write one".into()),
        false => Ok(()),
    }
}

/// A shell in the selected pod: bash where it has one.
pub(crate) fn shell_request(pod: &Seen, view: &ViewState, state: &State) -> Request {
    let key = &pod.key;
    let chosen = view.detail.container.as_ref().filter(|(name, _)| *name == key.name);
    let mut command = kubectl::words(state);
    command.extend(
        ["exec", "-it", "-n", key.namespace.as_deref().unwrap_or_default(), &key.name].map(str::to_owned),
    );
    if let Some((_, container)) = chosen {
        command.extend(["-c".to_owned(), container.clone()]);
    }
    let script = "command -v bash >/dev/null 2>&1 && exec bash || exec sh";
    command.extend(["--", "sh", "-c", script].map(str::to_owned));
    let title = format!("shell in Pod {}", key.name);
    let env = environment(state);
    Request::from(ProjectTask::Run {
        program: ProgramRun { title, command, env, in_front: true, pause: false, writes: true },
    })
}

/// Checks that ports of the selected object can be forwarded; the error says why not.
pub(crate) fn forwarded(view: &ViewState, state: &State) -> Result<Arc<Seen>, NotNow> {
    if connected(state)?.cluster.embedded {
        return Err("the embedded control plane runs no containers; nothing listens on its pods".into());
    }
    writes(state)?;
    let can = |seen: &&Arc<Seen>| {
        matches!(
            (seen.key.group.as_str(), seen.key.kind.as_str()),
            ("", "Pod" | "Service") | ("apps", "Deployment" | "StatefulSet" | "ReplicaSet")
        )
    };
    view.subject(state).filter(can).cloned().ok_or(NotNow::NotSelected { what: "Pod, Service or workload" })
}

/// The ports that an object names, as `local:remote`. Local ones below 1024 need rights that users lack.
pub(crate) fn ports(seen: &Seen) -> Vec<String> {
    let object = &seen.object;
    let lists = ["/spec/ports", "/spec/containers", "/spec/template/spec/containers"];
    let all = lists.iter().filter_map(|path| object.pointer(path).and_then(Value::as_array)).flatten();
    let ports = all.flat_map(|one| match one.get("ports").and_then(Value::as_array) {
        Some(ports) => ports.iter().filter_map(|port| port["containerPort"].as_u64()).collect::<Vec<_>>(),
        None => one["port"].as_u64().into_iter().collect(),
    });
    let pair = |port: u64| format!("{}:{port}", if port < 1024 { port + 8000 } else { port });
    ports.map(pair).collect()
}

/// Forwards a port, such as `8080:80` or `80`, from loopback to the selected object, until it is cancelled or
/// opdev ends.
///
/// # Errors
/// Where the text is no port, or nothing can be forwarded to.
pub(crate) fn forward_request(pair: &str, view: &ViewState, state: &State) -> Result<Request, NotNow> {
    let seen = forwarded(view, state)?;
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let (local, remote) = pair.trim().split_once(':').unwrap_or((pair.trim(), pair.trim()));
    let (Some(local), Some(remote)) = (number(local), number(remote)) else {
        return Err(format!("{pair} is no port such as 8080 or 8080:80").into());
    };
    let key = &seen.key;
    let kind = key.kind.to_lowercase();
    let mut command = kubectl::words(state);
    let namespace = key.namespace.clone().unwrap_or_default();
    command.extend(["port-forward".to_owned(), "-n".to_owned(), namespace]);
    command.extend([format!("{kind}/{}", key.name), format!("{local}:{remote}")]);
    let title = format!("forward 127.0.0.1:{local} to {} {}:{remote}", key.kind, key.name);
    let env = environment(state);
    Ok(Request::from(ProjectTask::Run {
        program: ProgramRun { title, command, env, in_front: false, pause: false, writes: true },
    }))
}
