//! What the operator of the newest run was seen to use, beside the roles that the project's markers make.
//! Reads the journal of that run; never asks a cluster.

use super::journal;
use super::manifests::Made;
use crate::event::Event;
use crate::tap::rights::{Difference, Rights};
use anyhow::{Context as _, Result, bail};
use opdev_object::yaml;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// The comparison as text, and whether a right is missing.
///
/// # Errors
/// Where there was no run, or no pass of a process was seen in it.
pub fn compared(root: &Path, made: &Made) -> Result<(String, bool)> {
    let rights = used(&root.join(".opdev"))?;
    let mut roles: Vec<Value> = Vec::new();
    for file in &made.files {
        let name = &file.artifact.name;
        for document in
            yaml::documents(&file.artifact.text).with_context(|| format!("{name} cannot be read"))?
        {
            roles.push(yaml::to_json(&document).with_context(|| format!("{name} cannot be read"))?);
        }
    }
    let (missing, unused) = (rights.missing(&roles), rights.unused(&roles));
    let mut text = format!("In {} passes of the newest run:\n", rights.passes);
    if missing.is_empty() {
        text.push_str("\nEvery right that was used is allowed by the markers.\n");
    } else {
        text.push_str("\nUsed, but not allowed by the markers; add above the Reconcile function:\n");
        for difference in &missing {
            let by = difference.controllers.join(", ");
            let _ = writeln!(text, "  {}\n      used by the controller {by}", difference.marker());
        }
    }
    if !unused.is_empty() {
        text.push_str("\nAllowed, but not used in this run (a longer run may use them):\n");
        let lines = unused.iter().map(Difference::marker);
        lines.for_each(|line| _ = writeln!(text, "  {line}"));
    }
    Ok((text, !missing.is_empty()))
}

/// What the passes in the journal used.
fn used(folder: &Path) -> Result<Rights> {
    let path = folder.join(journal::FILE);
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!("{} cannot be read; run the operator with `opdev run` first", path.display())
    })?;
    let mut rights = Rights::default();
    for line in text.lines().filter(|line| line.contains("\"event\":\"reconciled\"")) {
        // A line that is cut by a crash says nothing.
        if let Ok(Event::Reconciled(pass)) = serde_json::from_str(line) {
            rights.add(&pass);
        }
    }
    if rights.passes == 0 {
        bail!(
            "{} has no pass of a Go operator; --observed is about operators that are programs of their own: run one with \
             `opdev run` first",
            path.display()
        );
    }
    Ok(rights)
}
