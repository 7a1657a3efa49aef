//! Finds the reconcilers among the project's files, matches each to its kind, and loads those whose files
//! changed. Remembers each one's last working program. Pure: texts in, programs and diagnostics out; `load`
//! makes watches of them.

use super::chart_problems;
use super::files::{Files, hash, problem};
use opdev_event::{Diagnostic, Place};
use opdev_object::meta::Gvk;
use opdev_object::spelling::nearest;
use opdev_script::contract::Program;
use opdev_script::program;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Texts by their path from the project's root on.
pub(super) type Texts = BTreeMap<String, Arc<str>>;

/// The loader of reconcilers, over time.
#[derive(Debug, Default)]
pub(super) struct Reconcilers {
    loading: BTreeMap<String, LoadingReconciler>,
}

/// One reconciler over time.
#[derive(Debug, Default)]
struct LoadingReconciler {
    content: u64,
    good: Option<Arc<dyn Program>>,
    /// The texts of the good one.
    files: Texts,
    /// The one that served before the good one, until that has been tried.
    previous: Option<(Arc<dyn Program>, Texts)>,
    /// A version that waits for the user's answer.
    waiting: Option<(Arc<dyn Program>, Texts)>,
    /// The kind whose objects the newest one was refused on; its files are read again once the type of that
    /// kind is another.
    refused: Option<Gvk>,
    broken: Option<Diagnostic>,
}

/// A kind that a CRD defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Defined {
    /// At the version that is stored.
    pub(super) gvk: Gvk,
    /// All served versions.
    pub(super) versions: Vec<String>,
}

/// A reconciler that feeds a kind.
#[derive(Debug)]
pub(super) struct LoadedReconciler {
    pub(super) gvk: Gvk,
    pub(super) path: String,
    pub(super) program: Option<Arc<dyn Program>>,
    pub(super) files: Texts,
    pub(super) broken: Option<Diagnostic>,
    /// The program is another one than before.
    pub(super) fresh: bool,
    /// It stands beside the chart of its kind.
    pub(super) beside: bool,
}

/// A file or folder that may be a reconciler.
struct Candidate {
    path: String,
    /// The kind it is named after.
    named: String,
    /// `opdev.yaml` names it for that kind.
    by_settings: bool,
}

const SCRIPTS: [&str; 4] = [".ts", ".mts", ".js", ".mjs"];
const TEMPLATES: [&str; 4] = [".yaml", ".yml", ".tpl", ".gotmpl"];

fn is_script(path: &str) -> bool {
    SCRIPTS.iter().any(|end| path.ends_with(end)) && !path.ends_with(".d.ts") && !path.ends_with(".d.mts")
}

/// The kind's name as files write it: `memcached-backup` stands for `MemcachedBackup`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

impl Reconcilers {
    /// Loads what changed. `charts` are the kinds that charts feed, with the place that says so.
    pub(super) fn load(
        &mut self,
        files: &Files,
        defined: &[Defined],
        charts: &[(Gvk, Place)],
        forced: bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<LoadedReconciler> {
        let candidates = candidates(files);
        self.loading.retain(|path, _| candidates.iter().any(|candidate| candidate.path == *path));
        let mut loaded: Vec<LoadedReconciler> = Vec::new();
        for candidate in candidates {
            let matching = matching(&candidate.named, defined);
            let texts = texts_of(&candidate.path, &files.reconcilers);
            if texts.is_empty() {
                diagnostics.push(missing(&candidate));
                continue;
            }
            // A file beside the reconcilers that nobody is named after is a module of theirs.
            if matching.is_empty() && !candidate.by_settings && !says_it_reconciles(&candidate.path, &texts) {
                continue;
            }
            let fresh = self.read(&candidate.path, &texts, &files.reconcilers, forced);
            let Some(loading) = self.loading.get(&candidate.path) else { continue };
            let asked = loading.good.as_ref().and_then(|good| good.facts().kind.clone());
            let gvk = match kind(&candidate, asked, &matching, defined) {
                Ok(gvk) => gvk,
                Err(why) => {
                    // The error that keeps it from loading is more useful than a guess at its kind.
                    diagnostics.push(loading.broken.clone().unwrap_or(*why));
                    continue;
                }
            };
            let asks = loading.good.as_ref().map(|good| good.facts().is_chart_script());
            let same = |other: &Gvk| other.group_kind() == gvk.group_kind();
            let has_chart = charts.iter().any(|(other, _)| same(other));
            // A script that never loaded is taken for the sort that belongs there: nothing may be installed
            // without it.
            let beside = asks.unwrap_or(has_chart);
            if beside && !has_chart {
                diagnostics.push(without_chart(&candidate, &gvk));
                continue;
            }
            let charts = if beside { &[] } else { charts };
            if let Some(why) = taken(&candidate, &gvk, charts, &loaded) {
                diagnostics.push(why);
                continue;
            }
            let mut broken = loading.broken.clone();
            if let Some(broken) = &mut broken {
                broken.kind = Some(gvk.clone());
            }
            loaded.push(LoadedReconciler {
                gvk,
                path: candidate.path,
                program: loading.good.clone(),
                files: loading.files.clone(),
                broken,
                fresh,
                beside,
            });
        }
        loaded
    }

    /// Loads one whose files differ; whether it has a new program.
    fn read(&mut self, path: &str, texts: &Texts, all: &Texts, forced: bool) -> bool {
        let loading = self.loading.entry(path.to_owned()).or_default();
        let content = hash(texts);
        if content == loading.content && !forced {
            return false;
        }
        loading.content = content;
        loading.waiting = None;
        loading.refused = None;
        if loading.good.is_some() && loading.files == *texts && !forced {
            // The edit was undone: what serves is what the files say.
            loading.broken = None;
            return false;
        }
        // A file that trips over a bug of opdev is one broken reconciler, not the end of the operator.
        let loaded = std::panic::catch_unwind(|| program::load(path, all));
        match loaded {
            Ok(Ok(program)) => {
                let older = std::mem::replace(&mut loading.files, texts.clone());
                loading.previous = loading.good.replace(program).map(|good| (good, older));
                loading.broken = None;
                true
            }
            Ok(Err(error)) => {
                loading.broken = Some(chart_problems::program(texts, &error));
                false
            }
            Err(_) => {
                let mut broken =
                    problem(path, "reading this reconciler tripped over a bug in opdev".to_owned());
                broken.hint = Some("the log has the details; the other kinds go on".to_owned());
                loading.broken = Some(broken);
                false
            }
        }
    }
}

impl Reconcilers {
    /// The newest program of a file does not serve: the one before it does.
    pub(super) fn hold_back(&mut self, path: &str, problem: &Diagnostic, waits: bool) {
        let Some(loading) = self.loading.get_mut(path) else { return };
        let Some((good, files)) = loading.previous.take() else { return };
        let newest = loading.good.replace(good);
        let texts = std::mem::replace(&mut loading.files, files);
        loading.waiting = newest.map(|newest| (newest, texts)).filter(|_| waits);
        loading.refused = problem.kind.clone().filter(|_| !waits);
        loading.broken = Some(problem.clone());
    }

    /// The program that served before the newest one of a file serves again, where it is still known.
    pub(super) fn go_back(&mut self, path: &str, problem: &Diagnostic) -> Option<(Arc<dyn Program>, Texts)> {
        self.loading.get(path)?.previous.as_ref()?;
        self.hold_back(path, problem, false);
        let loading = self.loading.get(path)?;
        Some((loading.good.clone()?, loading.files.clone()))
    }

    /// Reads refused programs of kinds again at the next load; whether there are any.
    pub(super) fn try_refused_again(&mut self, is_it: impl Fn(&Gvk) -> bool) -> bool {
        let mut any = false;
        for loading in self.loading.values_mut().filter(|one| one.refused.as_ref().is_some_and(&is_it)) {
            loading.content = 0;
            any = true;
        }
        any
    }

    /// Returns true if one waits.
    pub(super) fn waits(&self, path: &str) -> bool {
        self.loading.get(path).is_some_and(|loading| loading.waiting.is_some())
    }

    /// The program that waits serves from now on.
    pub(super) fn accept(&mut self, path: &str) -> Option<(Arc<dyn Program>, Texts)> {
        let loading = self.loading.get_mut(path)?;
        let (program, files) = loading.waiting.take()?;
        loading.good = Some(Arc::clone(&program));
        loading.files.clone_from(&files);
        loading.broken = None;
        Some((program, files))
    }

    /// The program that waits is dropped.
    pub(super) fn discard(&mut self, path: &str, problem: &Diagnostic) {
        if let Some(loading) = self.loading.get_mut(path) {
            loading.waiting = None;
            loading.broken = Some(problem.clone());
        }
    }
}

/// The possible reconcilers: those that `opdev.yaml` names, then those in the folders, by name.
fn candidates(files: &Files) -> Vec<Candidate> {
    let options = &files.options;
    let mut all: Vec<Candidate> = options
        .reconcilers
        .iter()
        .map(|(kind, path)| Candidate {
            path: path.trim_start_matches("./").trim_end_matches('/').to_owned(),
            named: kind.clone(),
            by_settings: true,
        })
        .collect();
    let mut found: BTreeSet<String> = BTreeSet::new();
    for folder in &options.reconciler_folders {
        let prefix = format!("{folder}/");
        for path in files.reconcilers.keys() {
            let Some(rest) = path.strip_prefix(&prefix) else { continue };
            match rest.split_once('/') {
                None if is_script(rest) && !rest.contains(".test.") && !rest.contains(".spec.") => {
                    found.insert(path.clone());
                }
                Some((name, inside)) if TEMPLATES.iter().any(|end| inside.ends_with(end)) => {
                    found.insert(format!("{prefix}{name}"));
                }
                None | Some(_) => {}
            }
        }
    }
    for path in found {
        if !all.iter().any(|candidate| candidate.path == path) {
            let name = path.rsplit('/').next().unwrap_or_default();
            let name = SCRIPTS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            all.push(Candidate { named: name.to_owned(), path, by_settings: false });
        }
    }
    all
}

/// The files of one reconciler: a script with all that it imports, or everything in a folder.
fn texts_of(path: &str, all: &Texts) -> Texts {
    if !all.contains_key(path) {
        let prefix = format!("{path}/");
        let inside = all.iter().filter(|(file, _)| file.starts_with(&prefix));
        return inside.map(|(file, text)| (file.clone(), Arc::clone(text))).collect();
    }
    let mut texts = Texts::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let Some(text) = all.get(&path).filter(|_| !texts.contains_key(&path)) else { continue };
        open.extend(imports(&path, text).into_iter().flat_map(|base| {
            let mut names = vec![base.clone()];
            names.extend(SCRIPTS.iter().map(|end| format!("{base}{end}")));
            // TypeScript's own way: the import names the file that would be built.
            names.extend(base.strip_suffix(".js").map(|stem| format!("{stem}.ts")));
            names
        }));
        texts.insert(path, Arc::clone(text));
    }
    texts
}

/// The relative paths in quotes, which is what imports look like; a few too many do no harm.
fn imports(from: &str, text: &str) -> Vec<String> {
    let folder: Vec<&str> = from.split('/').collect();
    let folder = &folder[..folder.len().saturating_sub(1)];
    let quoted = text.split(['"', '\'']).filter(|part| part.starts_with("./") || part.starts_with("../"));
    quoted
        .filter(|part| part.len() < 500 && !part.contains('\n'))
        .map(|part| {
            let mut path: Vec<&str> = folder.to_vec();
            for piece in part.split('/') {
                match piece {
                    "." | "" => {}
                    ".." => {
                        path.pop();
                    }
                    name => path.push(name),
                }
            }
            path.join("/")
        })
        .collect()
}

/// Returns true if a file that is named after no kind means to be a reconciler all the same.
fn says_it_reconciles(path: &str, texts: &Texts) -> bool {
    let Some(text) = texts.get(path) else { return true };
    let mut exports = text.lines().map(str::trim_start).filter(|line| line.starts_with("export"));
    exports.any(|line| line.contains("reconcile") || line.contains("sync"))
}

fn matching<'a>(named: &str, defined: &'a [Defined]) -> Vec<&'a Defined> {
    defined.iter().filter(|one| plain(&one.gvk.kind) == plain(named)).collect()
}

/// The kind that a reconciler is for: the one that it names itself, else the one it is named after.
fn kind(
    candidate: &Candidate,
    asked: Option<Gvk>,
    matching: &[&Defined],
    defined: &[Defined],
) -> Result<Gvk, Box<Diagnostic>> {
    let path = &candidate.path;
    if let Some(gvk) = asked {
        let known = defined.iter().find(|one| one.gvk.group_kind() == gvk.group_kind());
        return match known {
            Some(one) if !one.versions.contains(&gvk.version) => {
                let mut why = problem(path, format!("{gvk} is not a served version of {}", gvk.kind));
                why.hint = Some(format!("served are {}", one.versions.join(", ")));
                Err(Box::new(why))
            }
            // Kinds that no type of the project defines may be served by the cluster.
            Some(_) | None => Ok(gvk),
        };
    }
    match matching {
        [one] => Ok(one.gvk.clone()),
        [] => {
            let kinds: Vec<&str> = defined.iter().map(|one| one.gvk.kind.as_str()).collect();
            let mut why =
                problem(path, format!("{path} reconciles no kind: none is named {}", candidate.named));
            why.hint = Some(match nearest(&candidate.named, kinds.iter().copied()) {
                Some(near) => format!("did you mean {}?", near.to_lowercase()),
                None if kinds.is_empty() => {
                    "the project has no types yet: put Go types into config/types, or CRDs into config/crd"
                        .to_owned()
                }
                None => format!("the project's kinds are {}", kinds.join(", ")),
            });
            Err(Box::new(why))
        }
        many => {
            let names: Vec<String> = many.iter().map(|one| one.gvk.to_string()).collect();
            let mut why = problem(path, format!("{} is the name of {} kinds", candidate.named, many.len()));
            why.hint = Some(format!(
                "say which one in the file: export const kind = \"{}/{}\"; there are {}",
                many[0].gvk.api_version(),
                many[0].gvk.kind,
                names.join(" and ")
            ));
            Err(Box::new(why))
        }
    }
}

/// Why a reconciler must not feed a kind that something else feeds.
fn taken(
    candidate: &Candidate,
    gvk: &Gvk,
    charts: &[(Gvk, Place)],
    loaded: &[LoadedReconciler],
) -> Option<Diagnostic> {
    let same = |other: &Gvk| other.group_kind() == gvk.group_kind();
    let path = &candidate.path;
    let (message, hint) = if let Some((_, place)) = charts.iter().find(|(other, _)| same(other)) {
        (
            format!("{} has a chart, too ({place}): {path} does not run", gvk.kind),
            format!("remove the entry at {place} or {path}: one kind has one reconciler"),
        )
    } else {
        let other = loaded.iter().find(|other| same(&other.gvk))?;
        (
            format!("{} has two reconcilers, {} and {path}: the second does not run", gvk.kind, other.path),
            "keep one of the two".to_owned(),
        )
    };
    let mut why = problem(path, message);
    why.hint = Some(hint);
    Some(why)
}

/// A script that belongs beside a chart, of a kind that has none.
fn without_chart(candidate: &Candidate, gvk: &Gvk) -> Diagnostic {
    let path = &candidate.path;
    let message = format!("{path} has functions for a chart, and {} has no chart in watches.yaml", gvk.kind);
    let mut why = problem(path, message);
    why.hint = Some(
        "add an entry with a chart to watches.yaml, or export `reconcile`, which makes the objects by itself"
            .to_owned(),
    );
    why
}

fn missing(candidate: &Candidate) -> Diagnostic {
    let path = &candidate.path;
    let mut why = problem(path, format!("the reconciler of {} is not there: {path}", candidate.named));
    why.hint =
        Some("reconcilers in opdev.yaml names files or folders, relative to the project's root".to_owned());
    why
}

#[cfg(test)]
mod tests;
