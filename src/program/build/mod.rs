//! One build of the program: `go build` with the project's own flags, or the user's command. Dropping a build
//! that runs kills its processes. Never writes into the project but below `.opdev`.

mod compiler_lines;
pub mod traced_build;

use super::{debugger, gobuild};
use anyhow::{Context as _, Result};
use opdev_event::{Diagnostic, Severity};
use opdev_os::child;
use opdev_os::child::{Child, GroupEnd, Launch, status_words};
use opdev_os::read;
use opdev_os::small_file::small_text;
use opdev_project::program::settings::{Build, Plan};
use opdev_trace::instrument;
use opdev_trace::instrument::{OverlayFile, Rung};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Bytes of a build's output that are read.
const MOST: u64 = 4 << 20;

/// Files below `.opdev/bin` that are written by path. Whoever lets builds run removes what lies there, such
/// as a link that came with the project.
pub const WRITTEN: [&str; 4] = [OVERLAY, VET_OVERLAY, NEXT, LAST];
/// The binary that runs, below `.opdev/bin`; the next build may take it as it is.
pub const BUILT: &str = "operator";
/// Files that take part in a build in the place of others.
const OVERLAY: &str = "overlay.json";
/// Files that take part in `go vet` in the place of others.
const VET_OVERLAY: &str = "vet.json";
/// The binary that is to take the place of the running one.
const NEXT: &str = "operator.next";
/// The binary of the program before, as long as it may be needed.
pub(super) const LAST: &str = "operator.last";

/// The outcome of a build.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It succeeded.
    Built(Built),
    /// It failed.
    Broken(Vec<Diagnostic>),
}

impl Outcome {
    /// A build that failed for one reason without a place.
    pub(super) fn failed(message: String) -> Outcome {
        Outcome::Broken(vec![problem(message)])
    }
}

/// A program that was built.
#[derive(Debug, Default)]
pub(super) struct Built {
    /// The binary that is to take the place of the running one; `None` where the command itself is the
    /// program.
    pub(super) next: Option<PathBuf>,
    /// The trace files that were added to it.
    pub(super) rung: Option<Rung>,
    /// The warning about the added files, if there is one.
    pub(super) warning: Option<String>,
}

/// Builds one program again and again.
#[derive(Clone, Debug)]
pub(super) struct Builder {
    pub(super) plan: Plan,
    /// The project's root.
    pub(super) root: PathBuf,
    /// The project's `.opdev`.
    pub(super) folder: PathBuf,
    /// Where files that are added to builds are kept.
    pub(super) cache: PathBuf,
    /// The trace files that are added to the build; `None` for none.
    pub(super) rung: Option<Rung>,
    /// Files of the project in whose place others take part in the build.
    pub(super) replace: BTreeMap<PathBuf, PathBuf>,
}

/// The output of a command of a build.
struct BuildOutput {
    ok: bool,
    pub status: String,
    pub stdout: String,
    pub stderr: String,
}

impl Builder {
    /// Builds once.
    pub(super) async fn build(&mut self) -> Outcome {
        let built = match self.plan.build.clone() {
            Build::None => Ok(Outcome::Built(Built::default())),
            Build::Command(words) => self.command(&words).await,
            Build::Go { package, flags, ldflags } => self.go(&package, &flags, &ldflags).await,
        };
        built.unwrap_or_else(|error| Outcome::failed(format!("{error:#}")))
    }

    async fn command(&self, words: &[String]) -> Result<Outcome> {
        let said = self.run(words, &BTreeMap::new()).await?;
        if said.ok {
            return Ok(Outcome::Built(Built::default()));
        }
        let text = format!("{}{}", said.stdout, said.stderr);
        Ok(Outcome::Broken(self.command_problems(&text, &words.join(" "), &said.status)))
    }

    /// Places that compilers write as `file:line:column: message`, else the last lines.
    fn command_problems(&self, text: &str, words: &str, status: &str) -> Vec<Diagnostic> {
        let text = &*compiler_lines::uniform(text);
        let placed = gobuild::diagnostics(text, &self.plan.dir, &self.root, small_text);
        let is_error = |one: &Diagnostic| {
            let inside = |place: &opdev_event::Place| self.root.join(&place.file).is_file() && place.line > 0;
            one.place.as_ref().is_some_and(inside) && !one.message.starts_with("warning")
        };
        let placed: Vec<Diagnostic> = placed.into_iter().filter(is_error).collect();
        if !placed.is_empty() {
            return placed;
        }
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(12)..].join("\n");
        let mut found = problem(format!("`{words}` ended with {status}"));
        found.excerpt = Some(last).filter(|text| !text.is_empty());
        vec![found]
    }

    async fn go(&mut self, package: &str, flags: &[String], ldflags: &str) -> Result<Outcome> {
        let version = match self.go_version().await {
            Ok(version) => version,
            Err(error) => {
                let mut found = problem(format!("the go command does not run: {error:#}"));
                found.hint = Some(
                    "install Go from https://go.dev/dl, and start opdev where `go` is in PATH".to_owned(),
                );
                return Ok(Outcome::Broken(vec![found]));
            }
        };
        let (mut warning, first) = (None, self.rung);
        loop {
            let overlay = self.overlay(package)?;
            let said = self.go_build(package, flags, ldflags, (&version, overlay.as_ref())).await?;
            let next = self.binary(NEXT);
            if said.ok {
                let rung = overlay.map(|overlay| overlay.rung);
                return Ok(Outcome::Built(Built { next: Some(next), rung, warning }));
            }
            let text = gobuild::text_of(&said.stdout, &said.stderr);
            let mut found = gobuild::diagnostics(&text, &self.plan.dir, &self.root, small_text);
            let ours = |one: &Diagnostic| {
                let file = one.place.as_ref().map(|place| Path::new(&place.file).to_owned());
                file.is_some_and(|file| overlay.as_ref().is_some_and(|overlay| overlay.holds(&file)))
            };
            if let Some(own) = found.iter().find(|one| ours(one))
                && let Some(rung) = self.rung
            {
                // The user has made no mistake: less is added, and what was tried is said once.
                tracing::debug!(
                    "what opdev adds to the build ({}) does not compile: {}",
                    rung.name(),
                    own.message
                );
                self.rung = rung.below();
                let now = self.rung.map_or("nothing", Rung::name);
                warning = Some(format!(
                    "what opdev adds to the build does not compile with this project ({}), so it adds less: {now}",
                    opdev_event::words::one_line(&own.message)
                ));
                continue;
            }
            // Less did not help: the mistake is the project's own (a sum that go.sum lacks is told at our
            // file, too), and the next build adds as much as this one began with.
            self.rung = first;
            if found.is_empty() {
                found.push(problem(format!("go build {package} ended with {}", said.status)));
            }
            return Ok(Outcome::Broken(found));
        }
    }

    /// The files that are added, by their newest rung.
    fn overlay(&self, package: &str) -> Result<Option<OverlayFile>> {
        let Some(rung) = self.rung else { return Ok(None) };
        let go_mod = small_text(&self.plan.dir.join("go.mod")).unwrap_or_default();
        let Some(version) = gobuild::controller_runtime(&go_mod) else { return Ok(None) };
        let main = self.plan.dir.join(package.trim_start_matches("./"));
        let main = if package == "." { self.plan.dir.clone() } else { main };
        Ok(instrument::overlay(&main, &version, rung, &self.cache)?)
    }

    async fn go_build(
        &self,
        package: &str,
        flags: &[String],
        ldflags: &str,
        (version, overlay): (&str, Option<&OverlayFile>),
    ) -> Result<BuildOutput> {
        let next = self.binary(NEXT);
        std::fs::create_dir_all(self.folder.join("bin"))
            .context("the folder for the binary cannot be made")?;
        let mut words =
            vec!["go".to_owned(), "build".to_owned(), "-o".to_owned(), next.display().to_string()];
        let added = overlay.into_iter().flat_map(|overlay| &overlay.replace);
        words.extend(self.replaced(OVERLAY, added.chain(&self.replace))?);
        if minor(version).is_none_or(|minor| minor >= 24) {
            words.push("-json".to_owned());
        }
        if self.plan.debug.is_some() {
            let debuggable = debugger::debuggable(flags, ldflags);
            words.extend(debuggable.flags);
            // Every variable of the project is there to be looked at, and every line is a place to stop. What
            // it imports comes from the cache.
            words.push("-gcflags=./...=-N -l".to_owned());
            let ldflags = debuggable.ldflags;
            words.extend((!ldflags.is_empty()).then(|| format!("-ldflags={ldflags}")));
        } else {
            words.extend(flags.iter().cloned());
            // Panics keep their places without the tables of debuggers, and linking is half of a build.
            words.push(format!("-ldflags={}", format!("{ldflags} -s -w").trim()));
        }
        words.push(package.to_owned());
        self.offer_last(&next);
        self.run_go(&words).await
    }

    /// Lets the go command find what was built last where it writes: it links again only if something has
    /// changed.
    fn offer_last(&self, next: &Path) {
        let last = self.binary(BUILT);
        if std::fs::symlink_metadata(&last).is_ok_and(|about| about.is_file()) {
            // A link may be there already; and a link is made or the program is linked anew.
            let _ = std::fs::hard_link(&last, next);
        }
    }

    /// The project's own flags that a build for the debugger leaves out.
    pub(super) fn left_out(&self) -> Vec<String> {
        match &self.plan.build {
            Build::Go { flags, ldflags, .. } => debugger::debuggable(flags, ldflags).left_out,
            Build::Command(_) | Build::None => Vec::new(),
        }
    }

    /// Runs the go command with the toolchain that is here, or with one that was fetched before; none is
    /// fetched because of a save.
    async fn run_go(&self, words: &[String]) -> Result<BuildOutput> {
        let local = self.run(words, &local_toolchain()).await?;
        if !local.ok && local.stderr.contains("GOTOOLCHAIN=local") && self.has_toolchain(&local.stderr).await
        {
            return self.run(words, &BTreeMap::new()).await;
        }
        Ok(local)
    }

    /// The flag for files in whose place others take part; none where there is none.
    fn replaced<'a>(
        &self,
        name: &str,
        files: impl Iterator<Item = (&'a PathBuf, &'a PathBuf)>,
    ) -> Result<Vec<String>> {
        let replace: BTreeMap<String, String> =
            files.map(|(there, here)| (there.display().to_string(), here.display().to_string())).collect();
        if replace.is_empty() {
            return Ok(Vec::new());
        }
        let path = self.binary(name);
        std::fs::write(&path, json!({ "Replace": replace }).to_string())
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(vec!["-overlay".to_owned(), path.display().to_string()])
    }

    /// The warnings of `go vet` about some packages, as `./internal/controller`, with the flags of their
    /// build; `None` where it cannot look. It never takes time from what else runs.
    pub(super) async fn vet(&self, packages: &[String]) -> Option<Vec<Diagnostic>> {
        let Build::Go { flags, .. } = &self.plan.build else { return None };
        let replaced = self.replaced(VET_OVERLAY, self.replace.iter()).ok()?;
        let words = ["nice", "-n", "10", "go", "vet"].map(str::to_owned).into_iter();
        let words = words.chain(replaced).chain(flags.iter().cloned()).chain(packages.iter().cloned());
        let said = self.run_go(&words.collect::<Vec<String>>()).await.ok()?;
        if said.ok {
            return Some(Vec::new());
        }
        let mut found = gobuild::diagnostics(&said.stderr, &self.plan.dir, &self.root, small_text);
        // Without a place it is about vet itself: what does not compile is the build's to tell.
        found.retain(|one| one.place.as_ref().is_some_and(|place| place.line > 0));
        (!found.is_empty()).then_some(found)
    }

    /// Returns true if the toolchain that go.mod asks for lies in the module cache.
    async fn has_toolchain(&self, message: &str) -> bool {
        let wanted = message.split("requires go >= ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let (Some(wanted), Ok(cache)) = (wanted, self.go_env("GOMODCACHE").await) else { return false };
        let mut entries = read::entries(Path::new(&cache).join("golang.org")).into_iter().flatten();
        let start = format!("toolchain@v0.0.1-go{wanted}");
        entries.any(|entry| entry.file_name().to_string_lossy().starts_with(&start))
    }

    async fn go_version(&self) -> Result<String> {
        self.go_env("GOVERSION").await
    }

    async fn go_env(&self, name: &str) -> Result<String> {
        let words = ["go", "env", name].map(str::to_owned);
        let said = self.run(&words, &local_toolchain()).await?;
        anyhow::ensure!(said.ok, "`go env {name}` ended with {}: {}", said.status, said.stderr.trim());
        Ok(said.stdout.trim().to_owned())
    }

    /// A file below `.opdev/bin`.
    pub(super) fn binary(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    async fn run(&self, words: &[String], more: &BTreeMap<String, String>) -> Result<BuildOutput> {
        let mut env = more.clone();
        env.extend(self.plan.env.clone());
        let launch =
            Launch { command: words, dir: &self.plan.dir, env: &env, without: &[], ends: GroupEnd::AtOnce };
        let (child, stdout, stderr) = Child::start(&launch).await?;
        let said = child::said(child, (stdout, stderr), None, MOST).await;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (status, stdout, stderr) =
            (said.status.and_then(Result::ok), text(&said.stdout), text(&said.stderr));
        let ok = status.is_some_and(|status| status.success());
        Ok(BuildOutput { ok, status: status_words(status), stdout, stderr })
    }
}

/// No toolchain is fetched, unless the user has said which one is to be used.
fn local_toolchain() -> BTreeMap<String, String> {
    match std::env::var_os("GOTOOLCHAIN") {
        Some(_) => BTreeMap::new(),
        None => BTreeMap::from([("GOTOOLCHAIN".to_owned(), "local".to_owned())]),
    }
}

/// The N of `go1.N.M`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("go1.")?.split(['.', 'r', 'b']).next()?.parse().ok()
}

fn problem(message: String) -> Diagnostic {
    Diagnostic { severity: Severity::Error, message, place: None, excerpt: None, hint: None, kind: None }
}
