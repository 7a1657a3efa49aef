//! The delete dialog. What its keys do is in `dialog/delete`.

use super::super::dialog::Delete;
use super::super::text::{Row, wrap};
use super::super::theme::Role;
use super::super::view::ViewState;
use crate::event::Propagation;
use crate::tui::draw::boxes::{boxed, buttons};
use opdev_object::meta::ObjectRef;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws it.
pub(super) fn draw(delete: &Delete, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let cells = (body.width as usize).saturating_sub(8).min(70);
    let text = |text: &str, role: Role| {
        wrap(text, cells).into_iter().map(|line| Row::new(role, format!(" {line} "))).collect::<Vec<_>>()
    };
    let roomy = body.height > 12;
    let mut rows = if roomy { vec![Row::default()] } else { Vec::new() };
    rows.extend(named(&delete.objects, if roomy { 8 } else { 1 }));
    let title = match delete.objects.as_slice() {
        [one] if delete.hangs.is_some() => format!("{one} does not go"),
        [one] => format!("Delete {one}?"),
        many => format!("Delete {} objects?", many.len()),
    };
    if let Some(since) = &delete.hangs {
        rows.extend(text(&format!("It is to go since {since}, and waits for:"), Role::Text));
        for name in &delete.finalizers {
            rows.extend(text(&format!("  {name}: {}", meaning(name)), Role::Busy));
        }
        if delete.paused {
            rows.extend(text("It is paused: resume it, and its reconciler answers.", Role::Busy));
        }
        let consequence = "Removing them deletes it at once. What they were to clean up stays, and nobody \
                           will clean it up: releases, objects elsewhere, things outside the cluster.";
        rows.extend(text(consequence, Role::Bad));
        rows.extend(gap(roomy));
        rows.push(buttons(delete.on_delete, "Cancel", "Remove finalizers"));
        return boxed(&title, &rows, None, view, buffer, body);
    }
    let owned =
        delete.owned.iter().map(|(kind, n)| if *n > 1 { format!("{n} {kind}s") } else { kind.clone() });
    let owned = owned.collect::<Vec<_>>().join(", ");
    let (goes, how) = match delete.propagation {
        Propagation::Background => ("With it goes", "the object goes first, the others follow"),
        Propagation::Foreground => ("With it goes", "the others go first, the object waits for them"),
        Propagation::Orphan => ("Without an owner stays", "the others lose their owner and stay"),
    };
    if owned.is_empty() {
        rows.extend(text("It owns nothing.", Role::Text));
    } else {
        let more = if delete.more { ", and more that were not counted" } else { "" };
        rows.extend(text(&format!("{goes}: {owned}{more}."), Role::Text));
    }
    if !delete.finalizers.is_empty() {
        let waits = format!("It stays until these let go: {}.", delete.finalizers.join(", "));
        rows.extend(text(&waits, Role::Busy));
        if delete.paused {
            rows.extend(text("It is paused, so its reconciler does not answer them for now.", Role::Busy));
        }
    }
    rows.extend(gap(roomy));
    rows.push(propagation(delete.propagation));
    if roomy {
        rows.extend(text(how, Role::Dim));
    }
    let grace = match delete.grace.as_str() {
        "" => Row::new(Role::Key, " 0-9 ").and(Role::Dim, "grace period as the object says "),
        "0" => Row::new(Role::Key, " 0-9 ")
            .and(Role::Text, "grace period ")
            .and(Role::Bad, "0 s: containers are killed at once "),
        seconds => Row::new(Role::Key, " 0-9 ").and(Role::Text, format!("grace period {seconds}▏s ")),
    };
    rows.push(grace);
    rows.extend(gap(roomy));
    rows.push(buttons(delete.on_delete, "Cancel", "Delete"));
    boxed(&title, &rows, None, view, buffer, body);
}

fn gap(roomy: bool) -> Option<Row> {
    roomy.then(Row::default)
}

/// The names of several objects; one is in the title.
pub(super) fn named(objects: &[ObjectRef], most: usize) -> Vec<Row> {
    if objects.len() < 2 {
        return Vec::new();
    }
    let shown = if objects.len() > most { most } else { objects.len() };
    let mut rows: Vec<Row> =
        objects.iter().take(shown).map(|object| Row::new(Role::Text, format!(" {object} "))).collect();
    if objects.len() > shown {
        rows.push(Row::new(Role::Dim, format!(" and {} more ", objects.len() - shown)));
    }
    rows
}

fn propagation(of: Propagation) -> Row {
    let mut choice = Row::new(Role::Key, " ↑↓ ");
    for (which, name) in [
        (Propagation::Background, "Background"),
        (Propagation::Foreground, "Foreground"),
        (Propagation::Orphan, "Orphan"),
    ] {
        let chosen = which == of;
        let name = if chosen { format!("(•) {name}  ") } else { format!("( ) {name}  ") };
        choice = choice.and(if chosen { Role::Focus } else { Role::Dim }, name);
    }
    choice
}

/// What a finalizer is there for, as far as its name tells.
fn meaning(finalizer: &str) -> &'static str {
    match finalizer {
        "helm.sdk.operatorframework.io/uninstall-release" | "uninstall-helm-release" => {
            "the operator uninstalls the release first"
        }
        "opdev.dev/finalize" => "the reconciler cleans up first",
        "foregroundDeletion" => "what it owns goes first",
        "orphan" => "what it owns loses its owner first",
        "kubernetes.io/pvc-protection" | "kubernetes.io/pv-protection" => "something still uses the storage",
        "kubernetes" => "the namespace is emptied first",
        _ => "whoever put it there has to remove it",
    }
}
