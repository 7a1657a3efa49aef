//! Logs of the pods of the selected object: all of them by time, or one container. What is followed is what
//! is shown.

use super::super::text::Row;
use super::super::theme::Role;
use super::page::{DetailTab, Page, Stamp};
use crate::detail::parts::{clock_millis, nothing};
use crate::keys::action::Do;
use crate::keys::action::See;
use crate::keys::action::{Action, Section, action};
use crate::pane::Tab;
use opdev_event::{LogSource, PodLine, words};
use opdev_state::{Seen, State, tree};
use serde_json::Value;
use std::sync::Arc;

/// Containers that are followed at once.
const MOST: usize = 12;
/// Lines that are shown, the newest of all.
const LINES: usize = 2_000;

/// Every container of the pods of the selected object that has run, or, where the runs before are looked at,
/// that has been restarted: those of one pod stand together.
pub fn sources(page: &Page<'_>) -> Vec<LogSource> {
    let Some(seen) = page.subject else { return Vec::new() };
    if seen.key.kind == "Pod" && seen.key.group.is_empty() {
        return containers(seen, page.how.previous);
    }
    let nodes = tree::owned(page.state, &seen.key);
    let pods = nodes
        .iter()
        .map(|node| &node.seen)
        .filter(|seen| seen.key.kind == "Pod" && seen.key.group.is_empty());
    pods.flat_map(|pod| containers(pod, page.how.previous)).collect()
}

/// The containers of a pod that have something to say: those that run, or have ended.
fn containers(pod: &Arc<Seen>, previous: bool) -> Vec<LogSource> {
    let mut sources = Vec::new();
    for statuses in ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] {
        let statuses = pod.object.pointer(&format!("/status/{statuses}")).and_then(Value::as_array);
        for status in statuses.into_iter().flatten() {
            let has = |field: &str| {
                ["running", "terminated"]
                    .iter()
                    .any(|state| status.pointer(&format!("/{field}/{state}")).is_some())
            };
            let name = status.get("name").and_then(Value::as_str).unwrap_or_default();
            if has("lastState") || (has("state") && !previous) {
                sources.push(LogSource {
                    namespace: pod.key.namespace.clone().unwrap_or_default(),
                    pod: pod.key.name.clone(),
                    uid: pod.object_ref.uid.clone(),
                    container: name.to_owned(),
                    restarts: status.get("restartCount").and_then(Value::as_u64).unwrap_or(0),
                    previous,
                });
            }
        }
    }
    sources
}

/// The containers that are shown: the chosen one, else the first ones.
pub fn shown(page: &Page<'_>) -> Vec<LogSource> {
    let all = sources(page);
    let chosen = page.container;
    let one = chosen.and_then(|(pod, container)| {
        all.iter().find(|source| source.pod == *pod && source.container == *container)
    });
    match one {
        Some(one) => vec![one.clone()],
        None => all.into_iter().take(MOST).collect(),
    }
}

/// Returns true if the pods are played, not run.
pub fn simulated(state: &State) -> bool {
    state.started.as_ref().is_none_or(|started| started.cluster.embedded)
}

impl Tab {
    pub const PODS: Tab = Tab("pod-logs");
}

/// The tab.
pub(super) struct Pods;

impl DetailTab for Pods {
    fn tab(&self) -> Tab {
        Tab::PODS
    }

    fn title(&self) -> &'static str {
        "Pod logs"
    }

    fn action(&self) -> Action {
        action(Tab::PODS.0, Do::Show(Tab::PODS), &["O"], Section::Look)
            .about("pod logs", "Follow the logs of the selected object's pods for as long as they are shown.")
            .also(&["output"])
    }

    fn place(&self) -> u8 {
        10
    }

    fn stamp(&self, page: &Page<'_>) -> Stamp {
        Stamp::of_subject(page, page.state.pod_logs.total.wrapping_add(page.state.version))
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let (state, cells) = (page.state, page.cells);
        let Some(seen) = page.subject else {
            return nothing(
                "Nothing is selected. Logs of the pods of a custom resource or of an owned object show here.",
                cells,
            );
        };
        if simulated(state) {
            let text = "The embedded control plane plays the life of pods and runs no containers, so its pods have no logs. \
                        On a cluster that runs them, the logs of this object's pods show here.";
            return nothing(text, cells);
        }
        let all = sources(page);
        let shown = shown(page);
        if shown.is_empty() {
            let (kind, name) = (&seen.key.kind, &seen.key.name);
            let text = match page.how.previous {
                true => format!(
                    "No container of {kind} {name} was restarted. Logs of runs before a restart show here; {} goes back to \
                     those of now.",
                    key_of(page, See::Previous)
                ),
                false => {
                    format!("{kind} {name} has no pod with a container that has run yet. Its logs show here.")
                }
            };
            return nothing(&text, cells);
        }
        let mut rows = vec![heading(page, &all, &shown)];
        let mut lines: Vec<(&LogSource, &PodLine)> = Vec::new();
        for source in &shown {
            match state.pod_logs.of(source) {
                None => rows.push(Row::new(Role::Dim, format!(" {}: opening", name(source, &all)))),
                Some(log) => {
                    if log.dropped > 0 {
                        let text =
                            format!(" {}: {} older lines are not kept", name(source, &all), log.dropped);
                        rows.push(Row::new(Role::Dim, text));
                    }
                    lines.extend(log.lines.iter().map(|line| (source, line.as_ref())));
                }
            }
        }
        lines.sort_by_key(|(_, line)| line.at);
        let hidden = lines.len().saturating_sub(LINES);
        for (source, line) in &lines[hidden..] {
            let row = Row::new(Role::Dim, format!("{} ", clock_millis(line.at, page.zone)));
            let row =
                if shown.len() > 1 { row.and(Role::Key, format!("{} ", name(source, &all))) } else { row };
            rows.push(row.and(Role::Text, super::super::text::clean(&line.text)));
        }
        if lines.is_empty() {
            rows.push(Row::new(Role::Dim, " Nothing written yet."));
        }
        for source in &shown {
            if let Some(why) = state.pod_logs.of(source).and_then(|log| log.ended.as_ref()) {
                rows.push(Row::new(Role::Busy, format!(" {}: {}", name(source, &all), words::one_line(why))));
            }
        }
        rows
    }

    fn is_of_object(&self) -> bool {
        true
    }

    fn follows_end(&self) -> bool {
        true
    }

    fn file_ending(&self) -> &'static str {
        "log"
    }
}

fn heading(page: &Page<'_>, all: &[LogSource], shown: &[LogSource]) -> Row {
    let key = key_of(page, See::NextContainer);
    let what = match shown {
        [one] => format!(" {} {}", one.pod, one.container),
        many => format!(" {} containers", many.len()),
    };
    let more = all.len().saturating_sub(shown.len());
    let rest = match shown {
        [_] if all.len() > 1 => format!("  {key} for the next of {}", all.len()),
        [_] => String::new(),
        _ if more > 0 => format!("  and {more} more that are not followed; {key} for one alone"),
        _ => format!("  {key} for one alone"),
    };
    let row = Row::new(Role::Title, what);
    let row = if page.how.previous { row.and(Role::Changed, "  before the restart") } else { row };
    row.and(Role::Dim, rest)
}

fn key_of(page: &Page<'_>, see: See) -> String {
    page.keys.first(Do::See(see))
}

/// The end of the pod's name, by which the pods of one owner differ, and the container where pods have
/// several.
fn name(source: &LogSource, all: &[LogSource]) -> String {
    let end = source.pod.rsplit('-').next().unwrap_or(&source.pod);
    let alike = all.iter().any(|other| other.pod != source.pod && other.pod.rsplit('-').next() == Some(end));
    let pod = if alike { source.pod.as_str() } else { end };
    let several = all.iter().any(|other| other.pod == source.pod && other.container != source.container);
    if several { format!("{pod}/{}", source.container) } else { pod.to_owned() }
}
