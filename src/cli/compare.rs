//! `opdev crd --compare REF`: what the CRDs of this version change for those who use the ones of another
//! version. Starts no runtime, runs nothing of the project.

use anyhow::{Context as _, Result};
use opdev_project::Project;
use opdev_upgrade::{EndInput, Reader};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// Prints the differences; fails where one hurts.
pub(super) fn run(reference: &str, project: Option<&Path>, verbose: bool) -> Result<ExitCode> {
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let project = Project::discover(project, &here)?;
    let reader = Reader::of_definitions(&project.root);
    let from = reader.read(&EndInput::Named(reference.to_owned()))?;
    let to = reader.read(&EndInput::Folder(project.root.clone()))?;
    for end in [&from, &to] {
        for problem in &end.problems {
            let _ = writeln!(super::visible::err(), "note: {}: {problem}", end.name);
        }
    }
    let found = opdev_upgrade::compared(&from, &to);
    let mut text = opdev_upgrade::compared_text(&from.name, &to.name, &found, verbose);
    if std::env::var_os("GITHUB_ACTIONS").is_some() {
        text.push_str(&opdev_upgrade::compared_annotations(&found));
    }
    let written = super::visible::out().write_all(text.as_bytes());
    let hurts = found.iter().any(opdev_upgrade::hurts);
    Ok(if hurts || written.is_err() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
