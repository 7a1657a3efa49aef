//! What `opdev run` offers in a folder without a project: the `opdev init` that makes one, at one key.

use super::{Cli, Command, scaffold};
use anyhow::{Context as _, Result};
use clap::Parser as _;
use opdev_event::words::visible;
use opdev_os::read;
use opdev_scaffold::camel_case;
use std::ffi::OsStr;
use std::io::{BufRead as _, Write as _};
use std::path::Path;

/// Offers to make a project of the folder, and makes it where the answer is the enter key. False where there
/// is nothing to offer, or the answer was another one.
///
/// # Errors
/// What `opdev init` says.
pub(super) fn offer(folder: &Path) -> Result<bool> {
    let Some((what, arguments)) = proposal(folder) else { return Ok(false) };
    let said = format!(
        "There is no operator project here. {what}\n\n  opdev init {}\n\n\
         Press enter to run that now and go on, or n and enter to leave: ",
        arguments.join(" ")
    );
    let _ = write!(super::visible::err(), "{}", visible(&said));
    let _ = super::visible::err().flush();
    let mut answer = String::new();
    // The end of the input is no answer.
    let count = std::io::stdin().lock().read_line(&mut answer).context("the answer cannot be read")?;
    if count == 0 || !matches!(answer.trim(), "" | "y" | "yes") {
        return Ok(false);
    }
    let words = ["opdev", "init"].into_iter().map(str::to_owned).chain(arguments);
    let Command::Init(arguments) = Cli::try_parse_from(words)?.command else { return Ok(false) };
    scaffold::init(&arguments)?;
    Ok(true)
}

/// What the folder is, in lines that fit 80 columns, and the words after `opdev init`; `None` where the user
/// has something else in it.
fn proposal(folder: &Path) -> Option<(String, Vec<String>)> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    if folder.join("Chart.yaml").is_file() {
        return Some((
            "This folder is a chart.\nThis makes one of it:".to_owned(),
            words(&["--helm-chart", "."]),
        ));
    }
    let entries = read::entries(folder).ok()?.into_iter();
    let mut names = entries.map(|entry| entry.file_name()).filter(|name| !is_hidden(name));
    let Some(only) = names.next() else {
        let kind = kind_of(folder);
        let what = format!(
            "The folder is empty.\n\n  \
             opdev init --helm-chart CHART   begins with a chart that exists\n  \
             opdev init --types              with a Go type and a script\n  \
             opdev init --go                 with an operator in Go\n\n\
             This begins with a new small chart, for the kind {kind}:"
        );
        return Some((what, words(&["--group", "app", "--version", "v1alpha1", "--kind", &kind])));
    };
    let path = folder.join(&only);
    let is_chart = path.join("Chart.yaml").is_file() || path.extension().is_some_and(|end| end == "tgz");
    let name = only.to_str().filter(|_| is_chart && names.next().is_none())?;
    Some((
        format!("It holds the chart {name}.\nThis makes one of it:"),
        words(&["--helm-chart", &format!("./{name}")]),
    ))
}

fn is_hidden(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with('.')
}

/// A kind by the folder's name: `web-operator` is for `Web`.
fn kind_of(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let kind = camel_case(name.strip_suffix("-operator").unwrap_or(&name));
    let fits = kind.len() <= 40 && kind.starts_with(|c: char| c.is_ascii_uppercase());
    if fits { kind } else { "App".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_an_empty_folder_or_a_chart_gets_an_offer() {
        let folder = tempfile::Builder::new().prefix("web-").tempdir().unwrap();
        let root = folder.path().join("site-operator");
        fs::create_dir(&root).unwrap();
        let words = |root: &Path| proposal(root).map(|(_, words)| words.join(" "));
        assert_eq!(words(&root).unwrap(), "--group app --version v1alpha1 --kind Site");
        fs::create_dir(root.join(".git")).unwrap();
        assert!(words(&root).is_some());
        fs::create_dir(root.join("web")).unwrap();
        assert_eq!(words(&root), None);
        fs::write(root.join("web/Chart.yaml"), "name: web\n").unwrap();
        assert_eq!(words(&root).unwrap(), "--helm-chart ./web");
        fs::write(root.join("main.py"), "").unwrap();
        assert_eq!(words(&root), None);
        fs::write(root.join("Chart.yaml"), "name: web\n").unwrap();
        assert_eq!(words(&root).unwrap(), "--helm-chart .");
    }
}
