//! Completes values in the shell: contexts, objects of the samples, rules, tags. Reads files and asks git for
//! tags; starts nothing else and reaches no network, for each press of tab runs it, also in a project that a
//! stranger wrote.

use anyhow::{Context as _, Result};
use clap::builder::ArgExt;
use clap::{Arg, Command};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter};
use clap_complete::env::{CompleteEnv, Shells};
use opdev_cluster::{Choice, contexts};
use opdev_event::OnExit;
use opdev_findings::RULES;
use opdev_object::facts::minors;
use opdev_object::yaml;
use opdev_project::{Project, files};
use opdev_release::settings::HelmCompat;
use opdev_upgrade::{Git, Variant};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The shell's script sets it to the name of the shell. It is opdev's own: a variable `COMPLETE` may mean
/// something else.
const VARIABLE: &str = "OPDEV_COMPLETE";

/// How many samples are read, and for how long: a shell waits for the answer.
const MOST_SAMPLES: usize = 500;
const PATIENCE: Duration = Duration::from_millis(300);

/// Print what makes a shell complete opdev's commands, flags and values
///
/// The shell asks opdev at each tab: for contexts of the kubeconfig, objects of the samples, rules, tags and
/// paths.
#[derive(Debug, clap::Args)]
#[command(after_help = "bash: opdev completions bash > /etc/bash_completion.d/opdev\n\
                        zsh:  opdev completions zsh > \"${fpath[1]}/_opdev\"\n\
                        fish: opdev completions fish > ~/.config/fish/completions/opdev.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script with which a shell asks opdev at each tab.
pub(super) fn completions(args: &CompletionsArgs) -> Result<()> {
    let name = args.shell.to_string();
    let text = script(&name)?;
    super::about::print(&text.with_context(|| format!("{name} cannot be completed"))?)
}

/// Answers the shell that completes a command line; false where this process is none of that.
///
/// # Errors
/// A shell that is not known, or a standard output that cannot be written.
pub(super) fn answer(command: impl Fn() -> Command) -> std::result::Result<bool, clap::Error> {
    let here = std::env::current_dir().ok();
    let described = || with_values(command());
    CompleteEnv::with_factory(described).var(VARIABLE).try_complete(std::env::args_os(), here.as_deref())
}

/// The script that makes a shell ask opdev; nothing for a shell that is not known.
///
/// # Errors
/// None that a script in memory has.
fn script(shell: &str) -> std::io::Result<Option<Vec<u8>>> {
    let shells = Shells::builtins();
    let Some(known) = shells.completer(shell) else { return Ok(None) };
    let mut text = Vec::new();
    known.write_registration(VARIABLE, "opdev", "opdev", "opdev", &mut text)?;
    if shell == "zsh" {
        // zsh reads a file of its `fpath` at the first tab, as the body of the function that should answer
        // that tab.
        text.extend_from_slice(
            b"[ \"${funcstack[1]}\" = \"_opdev\" ] && _clap_dynamic_completer_opdev \"$@\"\n",
        );
    }
    Ok(Some(text))
}

/// The command line, with what its flags and arguments can be.
fn with_values(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(|argument| with_value(&name, argument)).mut_subcommands(with_values)
}

fn with_value(command: &str, argument: Arg) -> Arg {
    let id = argument.get_id().as_str().to_owned();
    match (command, id.as_str()) {
        (_, "context" | "allow_context") => argument.add(one_of(|| contexts::names(&Choice::default()))),
        (_, "kubernetes") => argument.add(one_of(minors::known)),
        (_, "helm_compat") => argument.add(one_of(|| HelmCompat::NAMED.map(|(name, _)| name))),
        ("run", "on_exit") => argument.add(one_of(|| OnExit::NAMED.map(|(name, _)| name))),
        ("run", "only") => argument.add(one_of(|| kinds_and_objects().0)),
        ("plan", "objects") => argument.add(one_of(|| {
            let (kinds, objects) = kinds_and_objects();
            kinds.into_iter().chain(objects)
        })),
        ("explain", "rule") => argument.add(ArgValueCandidates::new(|| {
            RULES.iter().map(|rule| CompletionCandidate::new(rule.id).help(Some(rule.name.into()))).collect()
        })),
        ("torture", "scenario") => argument.add(one_of(|| opdev_torture::SCENARIOS)),
        ("torture", "only") => {
            argument.add(one_of(|| opdev_torture::Class::ALL.map(opdev_torture::Class::name)))
        }
        ("upgrade", "only") => argument.add(one_of(|| Variant::ALL.map(Variant::name))),
        ("upgrade", "from" | "to") | ("crd", "compare") => {
            argument.add(ArgValueCompleter::new(|typed: &std::ffi::OsStr| {
                let folders = clap_complete::engine::ValueCompleter::complete(&PathCompleter::dir(), typed);
                let fitting = |tag: &OsString| tag.to_string_lossy().starts_with(&*typed.to_string_lossy());
                let tags = tags().into_iter().map(OsString::from).filter(fitting);
                tags.map(CompletionCandidate::new).chain(folders).collect()
            }))
        }
        ("render", "names") => argument.add(ArgValueCompleter::new(PathCompleter::any())),
        _ if is_folder(&argument) => argument.add(ArgValueCompleter::new(PathCompleter::dir())),
        _ => argument,
    }
}

/// Returns true for a path that the help calls a folder.
fn is_folder(argument: &Arg) -> bool {
    let is_named = |names: &[clap::builder::Str]| matches!(names, [name] if name == "DIR");
    argument.get_value_names().is_some_and(is_named)
}

/// Candidates from a list of texts.
fn one_of<T, L>(list: impl Fn() -> L + Send + Sync + 'static) -> impl ArgExt
where
    T: Into<OsString>,
    L: IntoIterator<Item = T>,
{
    ArgValueCandidates::new(move || list().into_iter().map(CompletionCandidate::new).collect())
}

/// The project that is meant; none where there is none, or its settings are broken: a shell has no place for
/// errors.
fn project() -> Option<Project> {
    Project::discover(None, &std::env::current_dir().ok()?).ok()
}

/// The kinds of custom resources in the samples, then each as `KIND/NAME`, with its namespace where it says
/// one.
fn kinds_and_objects() -> (BTreeSet<String>, BTreeSet<String>) {
    let mut found = (BTreeSet::new(), BTreeSet::new());
    let files: Vec<PathBuf> = project().as_ref().map(files::samples).unwrap_or_default();
    let begun = Instant::now();
    for file in files.iter().take(MOST_SAMPLES) {
        if begun.elapsed() > PATIENCE {
            break;
        }
        let text = opdev_os::small_file::small_text(file).unwrap_or_default();
        for document in yaml::documents(&text).unwrap_or_default() {
            let text = |node: Option<&yaml::Node>| node.and_then(yaml::Node::as_str).map(str::to_owned);
            let (version, kind) = (text(document.get("apiVersion")), text(document.get("kind")));
            let (Some(version), Some(kind)) = (version, kind) else { continue };
            if !is_custom(&version) {
                continue;
            }
            let metadata = document.get("metadata");
            if let Some(name) = text(metadata.and_then(|metadata| metadata.get("name"))) {
                let namespace = text(metadata.and_then(|metadata| metadata.get("namespace")));
                let namespace = namespace.map_or_else(String::new, |namespace| format!("{namespace}/"));
                found.1.insert(format!("{kind}/{namespace}{name}"));
            }
            found.0.insert(kind);
        }
    }
    found.0.retain(|kind| is_harmless(kind));
    found.1.retain(|object| is_harmless(object));
    found
}

/// Returns true for a word that no shell reads as anything but itself: a script of bash or PowerShell puts it
/// into the command line as it is, and a stranger's sample or tag may be called `$(reboot)`.
fn is_harmless(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '+' | '-' | '@');
    !word.starts_with('-') && word.chars().all(is_plain)
}

/// Returns true for a group that Kubernetes itself does not have: it has those without a dot, and those of
/// `k8s.io`.
fn is_custom(version: &str) -> bool {
    let group = version.split_once('/').map_or("", |(group, _)| group);
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// The tags of the project's repository, the newest first.
fn tags() -> Vec<String> {
    let root = project().map(|project| project.root).or_else(|| std::env::current_dir().ok());
    let tags = root.and_then(|root| Git::of(&root).ok()?.tags().ok()).unwrap_or_default();
    tags.into_iter().filter(|tag| is_harmless(tag)).collect()
}
