//! The project's choice of controller-gen: the flags in its Makefile, and the release it pins there, in
//! `go.mod` or in the CRDs it has committed. Pure: texts in, settings out; never runs make, Go or
//! controller-gen.

mod makefile;
mod options;
mod scripts;

use crate::diagnostic::{Diagnostic, Place};
use makefile::{Command, Makefile};
pub use options::{CrdFlags, Given, ObjectFlags, Output, RbacFlags, WebhookFlags};

/// A text and the path it came from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The path as it is shown.
    pub path: &'a str,
    /// The text.
    pub text: &'a str,
}

/// One call of controller-gen with what concerns CRDs, roles, webhooks and copy methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The make target it belongs to; empty where the project has no Makefile.
    pub target: String,
    /// The folder it runs in, relative to the project; empty for the project's own.
    pub folder: String,
    /// Package patterns, such as `./...`.
    pub paths: Vec<String>,
    /// The flags of `crd`, where it is called for.
    pub crd: Option<CrdFlags>,
    /// The flags of `rbac`, where it is called for.
    pub rbac: Option<RbacFlags>,
    /// The flags of `object`, where it is called for.
    pub object: Option<ObjectFlags>,
    /// The flags of `webhook`, where it is called for.
    pub webhook: Option<WebhookFlags>,
    /// Where CRDs go.
    pub crd_output: Output,
    /// Where roles go.
    pub rbac_output: Output,
    /// Where webhook configurations go.
    pub webhook_output: Output,
    /// Where copy methods go; `None` is beside the types.
    pub object_output: Option<Output>,
    /// Where it stands.
    pub place: Option<Place>,
}

/// The release a project pins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// As written, such as `v0.18.0`.
    pub text: String,
    /// The place of the pin, in words: `CONTROLLER_TOOLS_VERSION in Makefile:12`.
    pub said_by: String,
}

/// A project's settings of controller-gen.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The pinned release.
    pub version: Option<Version>,
    /// The calls that write CRDs, roles or webhook configurations, in order; never empty.
    pub invocations: Vec<Invocation>,
    /// The calls that write copy methods, in order; empty where there is none.
    pub object_calls: Vec<Invocation>,
    /// Flags that are not known or have no effect here.
    pub diagnostics: Vec<Diagnostic>,
}

/// The files of a project that may say something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'a> {
    /// The Makefile, then files that it includes.
    pub makefiles: &'a [Source<'a>],
    /// Shell scripts, and Go files with `//go:generate` lines or targets of mage, that name controller-gen:
    /// they count where the Makefile does not call it.
    pub scripts: &'a [Source<'a>],
    /// `go.mod`.
    pub go_mod: Option<Source<'a>>,
    /// Each `go.mod` of a folder for tools, such as `hack/tools`.
    pub tools: &'a [Source<'a>],
    /// Committed CRDs.
    pub crds: &'a [Source<'a>],
    /// This year, for Makefiles that ask `date`.
    pub year: &'a str,
}

/// One command of a Makefile's recipe, with its variables put in as far as text alone can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeCommand {
    /// The targets whose recipe it is in, separated by spaces.
    pub target: String,
    /// The folder it runs in, relative to the Makefile's; empty for that one.
    pub folder: String,
    /// Its words, unquoted; variables that are set for it alone come first.
    pub words: Vec<String>,
}

/// Every command of every recipe, in order. `root` is the project's folder as a whole path, which `$(CURDIR)`
/// and the like stand for, `home` the user's. What only a shell could tell is left empty.
pub fn commands(makefiles: &[Source<'_>], root: &str, home: &str) -> Vec<RecipeCommand> {
    let commands = Makefile::read(makefiles, "").commands().into_iter();
    let whole = |text: String| text.replace(makefile::ROOT, root).replace(makefile::HOME, home);
    commands
        .map(|Command { words, folder, target, place: _ }| RecipeCommand {
            target,
            folder: whole(folder),
            words: words.into_iter().map(whole).collect(),
        })
        .collect()
}

/// Reads what a project says. Without a call of controller-gen, what kubebuilder scaffolds is assumed.
pub fn settings(inputs: &Inputs<'_>) -> Settings {
    let makefile = Makefile::read(inputs.makefiles, inputs.year);
    let mut found = Settings { version: version(inputs, &makefile), ..Settings::default() };
    let mut all = Vec::new();
    let mut read = |commands: Vec<Command>, all: &mut Vec<Invocation>| {
        for command in commands {
            let command = command.read_in_folder();
            let Some(flags) = flags_of(&command) else { continue };
            let Some(call) = options::invocation(&command, flags, &mut found.diagnostics) else { continue };
            if call.object.is_some() {
                found.object_calls.push(call.clone());
            }
            if call.crd.is_some() || call.rbac.is_some() || call.webhook.is_some() {
                all.push(call);
            }
        }
    };
    let callers = makefile.commands();
    read(callers.clone(), &mut all);
    if all.is_empty() {
        let scripts = inputs.scripts.iter().flat_map(|file| scripts::commands(file, &callers, inputs.year));
        read(scripts.collect(), &mut all);
    }
    let in_manifests = |call: &Invocation| call.target.split_whitespace().any(|name| name == "manifests");
    let any = all.iter().any(|call| in_manifests(call) && call.crd.is_some());
    let in_generate = |call: &Invocation| call.target.split_whitespace().any(|name| name == "generate");
    if found.object_calls.iter().any(in_generate) {
        found.object_calls.retain(in_generate);
    }
    found.invocations = if any { all.into_iter().filter(in_manifests).collect() } else { all };
    // A project that asks for roles alone gets nothing on top.
    if found.invocations.is_empty() {
        found.invocations.push(Invocation::scaffolded());
    }
    found
}

impl Invocation {
    /// The call in the Makefile that kubebuilder scaffolds.
    pub fn scaffolded() -> Invocation {
        Invocation {
            target: String::new(),
            folder: String::new(),
            paths: vec!["./...".to_owned()],
            crd: Some(CrdFlags::default()),
            rbac: Some(RbacFlags { role_name: "manager-role".to_owned(), ..RbacFlags::default() }),
            object: None,
            webhook: Some(WebhookFlags::default()),
            crd_output: Output::Folder("config/crd/bases".to_owned()),
            rbac_output: Output::Folder("config/rbac".to_owned()),
            webhook_output: Output::Folder("config/webhook".to_owned()),
            object_output: None,
            place: None,
        }
    }
}

/// Returns true if a word is a flag of controller-gen and no package pattern: `crd:maxDescLen=0`,
/// `paths=./...`.
pub fn is_flag(word: &str) -> bool {
    let name = word.split(['=', ':']).next().unwrap_or_default();
    match name {
        "crd" | "rbac" | "object" | "webhook" => {
            name.len() == word.len() || word[name.len()..].starts_with(':')
        }
        "paths" => word.starts_with("paths="),
        "output" => word.starts_with("output:"),
        _ => false,
    }
}

/// Reads flags in controller-gen's own form, with their errors.
pub fn given(words: &[String]) -> (Given, Vec<Diagnostic>) {
    let mut said = Vec::new();
    let given = options::given(words, &mut |message| said.push(Diagnostic::warning(message, None)));
    (given.unwrap_or_default(), said)
}

/// The flags of a command that calls controller-gen, directly or through `go run` or `go tool`.
fn flags_of(command: &Command) -> Option<&[String]> {
    let is_assignment =
        |word: &String| word.split_once('=').is_some_and(|(name, _)| !name.contains([':', '/', '.']));
    let start = command.words.iter().position(|word| !is_assignment(word))?;
    let words = &command.words[start..];
    let at = words.iter().position(|word| {
        let path = word.split('@').next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        name == "controller-gen"
            || name.strip_prefix("controller-gen-").is_some_and(|rest| rest.starts_with('v'))
    })?;
    let first = words.first()?.rsplit('/').next().unwrap_or_default();
    (at == 0 || (first == "go" && matches!(words.get(1).map(String::as_str), Some("run" | "tool"))))
        .then(|| &words[at + 1..])
}

/// The first that says which release: a variable of the Makefile, a module with its version in a Makefile,
/// a `go.mod`, the annotation of a committed CRD.
fn version(inputs: &Inputs<'_>, makefile: &Makefile) -> Option<Version> {
    let of_tool = |name: &str| {
        let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let letters = letters.to_ascii_lowercase();
        (letters.contains("controllertools") || letters.contains("controllergen")) && letters.contains("ver")
    };
    for (name, variable) in &makefile.variables {
        if of_tool(name)
            && let Some(text) = makefile.value(name).as_deref().and_then(release)
        {
            let said_by = format!("{name} in {}:{}", variable.place.file, variable.place.line);
            return Some(Version { text, said_by });
        }
    }
    let in_text = |source: &Source<'_>, marks: &[&str]| {
        source.text.lines().zip(1..).find_map(|(line, number)| {
            let after = marks.iter().find_map(|mark| line.split_once(mark))?.1;
            let text = release(after.trim_start())?;
            Some(Version { text, said_by: format!("{}:{number}", source.path) })
        })
    };
    let marks = ["controller-gen@", "controller-gen=", "controller-tools@"];
    inputs
        .makefiles
        .iter()
        .find_map(|source| in_text(source, &marks))
        .or_else(|| {
            let modules = inputs.go_mod.iter().chain(inputs.tools);
            modules.into_iter().find_map(|source| in_text(source, &["sigs.k8s.io/controller-tools "]))
        })
        .or_else(|| {
            of_most(
                inputs
                    .crds
                    .iter()
                    .filter_map(|source| in_text(source, &["controller-gen.kubebuilder.io/version:"]))
                    .collect(),
            )
        })
}

/// The release that most of the committed CRDs were made with: one that was left behind says little of the
/// others.
fn of_most(mut found: Vec<Version>) -> Option<Version> {
    let all = found.len();
    let count = |text: &str, found: &[Version]| found.iter().filter(|one| one.text == text).count();
    let best = (0..all).rev().max_by_key(|index| count(&found[*index].text, &found))?;
    let many = count(&found[best].text, &found);
    let mut version = found.swap_remove(best);
    if many < all {
        version.said_by = format!("{many} of {all} committed CRDs, as {}", version.said_by);
    }
    Some(version)
}

/// The release a text begins with: `v0.18.0`, `0.18.0`, in quotes or not.
fn release(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches(['"', '\'']);
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(text.len());
    let digits = text[..end].trim_start_matches('v');
    let mut parts = digits.split(['-', '+']).next().unwrap_or_default().split('.');
    let number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u16>().is_ok());
    (number(parts.next()) && number(parts.next()) && parts.all(|part| part.parse::<u16>().is_ok()))
        .then(|| format!("v{digits}"))
}

#[cfg(test)]
mod tests;
