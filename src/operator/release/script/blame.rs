//! The error that a script threw, as the failure of a reconcile. Pure.

use crate::verdict::Fault;
use anyhow::anyhow;
use opdev_event::mask;
use opdev_object::meta::Gvk;
use opdev_sources::{TypeReconciler, chart_problems};
use opdev_types::diagnostic::Diagnostic;

/// An error that a script threw, with its place in the project.
pub fn blamed(typed: &TypeReconciler, gvk: &Gvk, secrets: &[String], found: &Diagnostic) -> Fault {
    let mut diagnostic = chart_problems::program(&typed.files, found);
    diagnostic.kind = Some(gvk.clone());
    diagnostic.excerpt = diagnostic.excerpt.map(|text| mask::text(&text, secrets));
    let frames = found.stack.iter().rev().fold(None, |inner: Option<anyhow::Error>, frame| {
        let frame = format!("at {frame}");
        Some(match inner {
            Some(inner) => inner.context(frame),
            None => anyhow!(frame),
        })
    });
    let message = found.message.clone();
    let error = match frames {
        Some(frames) => frames.context(message),
        None => anyhow!(message),
    };
    Fault { diagnostic: Some(Box::new(diagnostic)), ..Fault::plain(error) }
}
