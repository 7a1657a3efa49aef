//! Where the source of an import lies, without a Go toolchain: the module's own folders, `replace` and
//! `go.work`, `vendor`, then the module cache. Reads `go.mod` and `go.work`; never downloads.

use super::Files;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// One `go.mod`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Module {
    /// Its folder.
    pub(crate) dir: String,
    /// Its path, such as `example.com/operator`.
    pub(crate) path: String,
    requires: BTreeMap<String, String>,
    /// Old path and version (any where empty), new path or folder, new version (empty for a folder).
    replaces: Vec<[String; 4]>,
}

/// Where a package was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) dir: String,
    /// It lies in the project or beside it, and may change.
    pub(crate) ours: bool,
}

/// Why a package was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The module it belongs to, and its version, where `go.mod` knows one.
    pub(crate) module: Option<(String, String)>,
}

/// The modules of one project.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    main: Rc<Module>,
    /// Folders of `go.work`, the main module among them.
    work: Vec<Rc<Module>>,
    work_replaces: Vec<[String; 4]>,
    work_dir: Option<String>,
    cache: Option<String>,
    /// The names of the folders that the project's root lies in, its own first.
    above: Vec<String>,
    /// `go.mod` of modules in the cache that the main one does not speak of.
    dependencies: BTreeMap<String, Option<Rc<Module>>>,
}

/// A path below a folder; `.` is where relative paths start.
pub(crate) fn join(dir: &str, rest: &str) -> String {
    if rest.starts_with('/') {
        return clean(rest);
    }
    if dir == "." || dir.is_empty() { clean(rest) } else { clean(&format!("{dir}/{rest}")) }
}

/// Without `.` parts and without `..` parts that can be resolved.
pub(crate) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let joined = parts.join("/");
    match (path.starts_with('/'), joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Capitals as the module cache writes them: `!` and the small letter.
fn escape(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if c.is_ascii_uppercase() {
            out.push('!');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The rest of an import path below a module's path.
fn below<'p>(path: &'p str, module: &str) -> Option<&'p str> {
    if module.is_empty() {
        return None;
    }
    let rest = path.strip_prefix(module)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}

/// Lines of a `go.mod` or `go.work`, as directive and words, blocks resolved.
fn directives(text: &str) -> Vec<(String, Vec<String>)> {
    let mut out = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let mut words: Vec<String> =
            line.split_whitespace().map(|word| word.trim_matches(['"', '`']).to_owned()).collect();
        if let Some(name) = &block {
            if words.first().is_some_and(|word| word == ")") {
                block = None;
            } else if !words.is_empty() {
                out.push((name.clone(), words));
            }
            continue;
        }
        if words.is_empty() {
            continue;
        }
        let name = words.remove(0);
        if words.first().is_some_and(|word| word == "(") {
            block = Some(name);
        } else {
            out.push((name, words));
        }
    }
    out
}

fn replacement(words: &[String]) -> Option<[String; 4]> {
    let arrow = words.iter().position(|word| word == "=>")?;
    let at = |index: usize| words.get(index).cloned().unwrap_or_default();
    let version = if arrow > 1 { at(1) } else { String::new() };
    Some([at(0), version, at(arrow + 1), at(arrow + 2)])
}

fn module(files: &dyn Files, dir: &str) -> Option<Module> {
    let text = files.read(&join(dir, "go.mod"))?;
    let mut module = Module { dir: dir.to_owned(), ..Module::default() };
    for (directive, words) in directives(&text) {
        match (directive.as_str(), words.as_slice()) {
            ("module", [path, ..]) => module.path.clone_from(path),
            ("require", [path, version, ..]) => {
                module.requires.insert(path.clone(), version.clone());
            }
            ("replace", words) => module.replaces.extend(replacement(words)),
            _ => {}
        }
    }
    (!module.path.is_empty()).then_some(module)
}

/// Into how many leading `..` and what follows them a relative path splits.
fn ups(dir: &str) -> Option<(usize, &str)> {
    let (mut count, mut rest) = (0, dir);
    while let Some(after) = rest.strip_prefix("..").filter(|after| after.is_empty() || after.starts_with('/'))
    {
        (count, rest) = (count + 1, after.trim_start_matches('/'));
    }
    (!dir.starts_with('/')).then_some((count, if rest == "." { "" } else { rest }))
}

/// The folder above; `None` at the top.
fn parent(dir: &str) -> Option<String> {
    match dir.rsplit_once('/') {
        Some(("", "")) => None,
        Some(("", _)) => Some("/".to_owned()),
        Some((parent, _)) => Some(parent.to_owned()),
        None if dir == "." => None,
        None => Some(".".to_owned()),
    }
}

impl Modules {
    /// The modules as seen from a folder: the nearest `go.mod` above it, and `go.work` where there is one.
    pub(crate) fn read(files: &dyn Files, dir: &str) -> Modules {
        let mut modules = Modules { cache: files.module_cache(), above: files.above(), ..Modules::default() };
        let mut at = Some(clean(dir));
        let mut found = false;
        while let Some(dir) = at {
            if !found && let Some(module) = module(files, &dir) {
                modules.main = Rc::new(module);
                found = true;
            }
            if let Some(text) = files.read(&join(&dir, "go.work")) {
                modules.read_work(files, &dir, &text);
                break;
            }
            // An operator is often one folder of a larger module.
            at = match ups(&dir) {
                Some((count, "")) if count < modules.above.len() => Some(join(&dir, "..")),
                Some((_, "")) => None,
                _ => parent(&dir),
            };
        }
        modules
    }

    /// Returns true if there is a `go.mod`.
    pub(crate) fn are_named(&self) -> bool {
        !self.main.path.is_empty() || !self.work.is_empty()
    }

    /// The texts that say where packages lie.
    pub(crate) fn texts(&self, files: &dyn Files) -> Vec<Option<Arc<str>>> {
        let work = self.work_dir.as_ref().map(|dir| join(dir, "go.work"));
        let all = std::iter::once(&self.main).chain(&self.work).map(|module| join(&module.dir, "go.mod"));
        all.chain(work).map(|path| files.read(&path)).collect()
    }

    /// The names of the folders from `from` folders above the root down to `to` above it, as a path.
    fn between(&self, from: usize, to: usize) -> Option<String> {
        let names = self.above.get(to..from)?;
        Some(names.iter().rev().map(String::as_str).collect::<Vec<_>>().join("/"))
    }

    /// A folder by its shortest name: one below the root never goes through what is above.
    fn nearest(&self, dir: String) -> String {
        let Some((mut count, mut rest)) = ups(&dir) else { return dir };
        while count > 0 {
            let Some(inner) = below(rest, &self.above[count - 1]) else { break };
            (count, rest) = (count - 1, inner);
        }
        clean(&format!("{}{rest}", "../".repeat(count)))
    }

    fn read_work(&mut self, files: &dyn Files, dir: &str, text: &str) {
        self.work_dir = Some(dir.to_owned());
        for (directive, words) in directives(text) {
            match (directive.as_str(), words.as_slice()) {
                ("use", [folder, ..]) => {
                    self.work.extend(module(files, &join(dir, folder)).map(Rc::new));
                }
                ("replace", words) => self.work_replaces.extend(replacement(words)),
                _ => {}
            }
        }
    }

    /// The import path of one of the project's folders.
    pub(crate) fn path_of(&self, dir: &str) -> String {
        let dir = clean(dir);
        let modules = std::iter::once(&self.main).chain(&self.work);
        let best = modules
            .filter(|module| !module.path.is_empty())
            .filter_map(|module| {
                let (near, rest) = match (ups(&module.dir), ups(&dir)) {
                    (Some((up, "")), Some((own, rest))) => {
                        let between = self.between(up, own)?;
                        (-i64::try_from(up).ok()?, join(&between, rest))
                    }
                    _ => (i64::try_from(module.dir.len()).ok()?, below(&dir, &module.dir)?.to_owned()),
                };
                let outer = rest.is_empty() || rest == ".";
                let path = if outer { module.path.clone() } else { format!("{}/{rest}", module.path) };
                Some((near, path))
            })
            .max_by_key(|(near, _)| *near);
        best.map_or_else(|| self.cached_path(&dir).unwrap_or(dir), |(_, path)| path)
    }

    /// The import path of a folder in the module cache: without the version, capitals as they were.
    fn cached_path(&self, dir: &str) -> Option<String> {
        let inside = dir.strip_prefix(self.cache.as_deref()?)?.strip_prefix('/')?;
        let (module, rest) = inside.split_once('@')?;
        let rest = rest.split_once('/').map_or("", |(_, rest)| rest);
        let mut path = String::with_capacity(inside.len());
        let mut capital = false;
        for c in module.chars() {
            match c {
                '!' => capital = true,
                c if capital => {
                    path.push(c.to_ascii_uppercase());
                    capital = false;
                }
                c => path.push(c),
            }
        }
        Some(if rest.is_empty() { path } else { format!("{path}/{rest}") })
    }

    /// Where a package lies.
    ///
    /// # Errors
    /// Where none of the places has it.
    pub(crate) fn find(
        &mut self,
        files: &dyn Files,
        path: &str,
        from: Option<&str>,
    ) -> Result<Found, Missing> {
        if !path.split('/').next().unwrap_or_default().contains('.') {
            let root = files.go_root().map(|root| join(&root, &format!("src/{path}")));
            if let Some(dir) = root.filter(|dir| has_source(files, dir)) {
                return Ok(Found { dir, ours: false });
            }
        }
        let ours = |dir: String| Found { dir, ours: true };
        let modules: Vec<Rc<Module>> = std::iter::once(&self.main).chain(&self.work).cloned().collect();
        for module in &modules {
            if let Some(rest) = below(path, &module.path) {
                let dir = self.nearest(join(&module.dir, rest));
                if has_source(files, &dir) {
                    return Ok(ours(dir));
                }
            }
        }
        for vendor in std::iter::once(&self.main.dir).chain(&self.work_dir) {
            let dir = join(vendor, &format!("vendor/{path}"));
            if has_source(files, &dir) {
                return Ok(ours(dir));
            }
        }
        let mut missing = Missing { module: None };
        for module in &modules {
            match self.by_module(files, module, path, &mut missing) {
                Some(found) => return Ok(found),
                None => continue,
            }
        }
        // A dependency of a dependency that an old go.mod does not list.
        if let Some(from) = from
            && let Some(module) = self.dependency(files, from)
            && let Some(found) = self.by_module(files, &module, path, &mut missing)
        {
            return Ok(found);
        }
        Err(missing)
    }

    fn dependency(&mut self, files: &dyn Files, dir: &str) -> Option<Rc<Module>> {
        let cache = self.cache.clone()?;
        let mut at = Some(dir.to_owned());
        while let Some(dir) = at.filter(|dir| dir.len() > cache.len() && dir.starts_with(&cache)) {
            let known =
                self.dependencies.entry(dir.clone()).or_insert_with(|| module(files, &dir).map(Rc::new));
            if known.is_some() {
                return known.clone();
            }
            at = parent(&dir);
        }
        None
    }

    fn by_module(
        &self,
        files: &dyn Files,
        module: &Module,
        path: &str,
        missing: &mut Missing,
    ) -> Option<Found> {
        let replaces =
            || self.work_replaces.iter().map(|replace| (self.work_dir.as_deref().unwrap_or("."), replace));
        let replaces =
            || replaces().chain(module.replaces.iter().map(|replace| (module.dir.as_str(), replace)));
        let required = module.requires.iter().map(|(path, version)| (path.as_str(), version.as_str()));
        let replaced = replaces().map(|(_, [old, version, ..])| (old.as_str(), version.as_str()));
        let mut candidates: Vec<(&str, &str)> =
            required.chain(replaced).filter(|(module, _)| below(path, module).is_some()).collect();
        candidates.sort_by_key(|(module, _)| std::cmp::Reverse(module.len()));
        for (name, version) in candidates {
            let rest = below(path, name)?;
            missing.module.get_or_insert_with(|| (name.to_owned(), version.to_owned()));
            let replace =
                replaces().find(|(_, [old, of, ..])| old == name && (of.is_empty() || of == version));
            match replace {
                Some((base, [_, _, new, new_version])) if new_version.is_empty() => {
                    let dir = join(&join(base, new), rest);
                    if has_source(files, &dir) {
                        return Some(Found { dir, ours: true });
                    }
                }
                Some((_, [_, _, new, new_version])) => {
                    if let Some(found) = self.cached(files, new, new_version, rest) {
                        return Some(found);
                    }
                }
                None => {
                    if let Some(found) = self.cached(files, name, version, rest) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    /// A module in the cache, in the very version: types of another one would be written into the project's
    /// files.
    fn cached(&self, files: &dyn Files, module: &str, version: &str, rest: &str) -> Option<Found> {
        let cache = self.cache.as_deref()?;
        let dir = join(&format!("{cache}/{}@{}", escape(module), escape(version)), rest);
        has_source(files, &dir).then_some(Found { dir, ours: false })
    }
}

fn has_source(files: &dyn Files, dir: &str) -> bool {
    files.list(dir).iter().any(|name| name.ends_with(".go"))
}
