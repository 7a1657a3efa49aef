//! One build: what a folder's kustomization names is gathered, generated, changed, and at the end given its
//! last names.

use crate::config::Config;
use crate::crds;
use crate::defaults;
use crate::error::{Error, ErrorKind, FileError, KustomizationError, Limit, ObjectError};
use crate::files::{Files, is_far, load_text};
use crate::generate::{self, GeneratorKind};
use crate::images;
use crate::kustomization::{self, File};
use crate::order;
use crate::patches;
use crate::read;
use crate::references;
use crate::replacements;
use crate::resource::{Resource, append, texts_only};
use crate::transform::{self, End, Placing};
use crate::transformers;
use crate::vars::{self, Vars};
use opdev_object::patch::size;
use opdev_object::yaml;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Kustomizations in one build. Each may name others, so few files can lead to very many.
const MOST: usize = 1000;
/// Folders that may be in each other.
const DEEPEST: usize = 32;
/// Entries of `resources` and `components` in one build.
const MOST_ENTRIES: usize = 10_000;
/// Objects of one kustomization.
const MOST_OBJECTS: usize = 3_000;
/// About how many bytes of JSON the objects of one kustomization may have.
const LARGEST: usize = 32 * 1024 * 1024;
/// Changes that files of their own describe, of one kustomization: an object keeps each name that it had.
const MOST_CHANGES: usize = 100;
/// Characters of a name in Kubernetes; no affix needs more.
const LONGEST_NAME: usize = 253;
/// An object that is only for kustomize carries this annotation.
const LOCAL: &str = "config.kubernetes.io/local-config";

/// An object of a build.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BuiltObject {
    /// The object as it is deployed.
    pub object: Value,
    /// The file that it stands in; of a generated one the kustomization.
    pub file: PathBuf,
    /// Its name before prefixes, suffixes and hashes.
    pub first_name: String,
    /// Keys of a generated ConfigMap or Secret and the files that they come from.
    pub sources: BTreeMap<String, PathBuf>,
}

/// The result of a build.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Built {
    /// The objects, in the order of `kubectl kustomize`.
    pub parts: Vec<BuiltObject>,
    /// The namespace that the outermost kustomization puts everything into.
    pub namespace: Option<String>,
    /// The prefix that the outermost kustomization gives every name.
    pub name_prefix: String,
    /// Errors of parts that were left out; always empty where nothing may be left out.
    pub left_out: Vec<Error>,
}

impl Built {
    /// The objects as one text, as `kubectl kustomize` prints them.
    pub fn to_yaml(&self) -> String {
        to_yaml(self.parts.iter().map(|part| &part.object))
    }
}

/// The objects as one text, in the order given, as `kubectl kustomize` prints them.
pub fn to_yaml<'a>(objects: impl IntoIterator<Item = &'a Value>) -> String {
    let texts: Vec<String> = objects.into_iter().map(opdev_object::yaml::to_string).collect();
    texts.join("---\n")
}

/// Builds the kustomization in a folder, as `kubectl kustomize` does.
///
/// # Errors
/// The first thing that cannot be built, with its file and line.
pub fn build(files: &dyn Files, folder: &Path) -> Result<Built, Error> {
    Build::new(files, None).run(folder)
}

/// Builds what can be built: what cannot be read or changed is left out, and said. Files in which none of the
/// kinds stands are not looked into.
///
/// # Errors
/// A folder without a kustomization that can be read, or a build that needs more than opdev lets it.
pub fn build_what_can_be(files: &dyn Files, folder: &Path, kinds: &[&str]) -> Result<Built, Error> {
    Build::new(files, Some(kinds)).run(folder)
}

/// Objects, and the rules that kustomizations below have added.
#[derive(Default)]
struct Gathered {
    resources: Vec<Resource>,
    config: Config,
    vars: Vars,
}

struct Build<'a> {
    files: &'a dyn Files,
    /// The kinds that are wanted, where anything may be left out.
    kinds: Option<&'a [&'a str]>,
    left_out: Vec<Error>,
    /// The folders that are being built, the outermost first.
    open: Vec<PathBuf>,
    read: usize,
    entries: usize,
    /// A bound is reached: nothing more is left out, the build ends.
    exhausted: bool,
}

impl<'a> Build<'a> {
    fn new(files: &'a dyn Files, kinds: Option<&'a [&'a str]>) -> Self {
        Build { files, kinds, left_out: Vec::new(), open: Vec::new(), read: 0, entries: 0, exhausted: false }
    }

    /// Ends the build: whoever made these files wants more of this machine than a kustomization needs.
    fn exhaust(&mut self, file: &Path, limit: Limit) -> Error {
        self.exhausted = true;
        Error::new(file, 0, limit)
    }

    fn run(mut self, folder: &Path) -> Result<Built, Error> {
        let real = self.files.real(folder).filter(|real| self.files.is_folder(real));
        let Some(root) = real else { return Err(Error::new(folder, 0, KustomizationError::NoFolder)) };
        let file = self.read_file(&root)?;
        let mut gathered = self.folder(&file, Gathered::default())?;
        generate::add_hashes(&mut gathered.resources);
        let fixed = references::fix(&mut gathered.resources, &gathered.config.name_reference);
        self.unless_left_out(fixed.map_err(|why| Error::new(&file.path, 0, why)))?;
        let Gathered { resources, config, vars } = &mut gathered;
        if self.kinds.is_some() {
            // An object of another kind is not looked for.
            vars.retain(|name, _| resources.iter().any(|resource| resource.vars.contains(name)));
        }
        self.step(&file, resources, |all| {
            vars::resolve(vars, &config.var_reference, all).map_err(|why| Error::new(&file.path, 0, why))
        })?;
        gathered.resources.retain(|resource| {
            let local = &resource.object["metadata"]["annotations"][LOCAL];
            local.is_null() || read::text(local) == "false"
        });
        let sorted = order::sort(&mut gathered.resources, file.content.sort_options.as_ref());
        self.unless_left_out(sorted.map_err(|why| file.error("sortOptions", None, why)))?;
        let parts = gathered.resources.into_iter().map(|mut resource| {
            texts_only(&mut resource.object, "annotations");
            if resource.object["metadata"]["annotations"].is_null()
                && let Some(metadata) = resource.object["metadata"].as_object_mut()
            {
                metadata.remove("annotations");
            }
            let first_name = resource.original_id().name;
            BuiltObject {
                object: resource.object,
                file: resource.file,
                first_name,
                sources: resource.sources,
            }
        });
        Ok(Built {
            parts: parts.collect(),
            namespace: Some(file.content.namespace).filter(|namespace| !namespace.is_empty()),
            name_prefix: file.content.name_prefix,
            left_out: self.left_out,
        })
    }

    /// Where something may be left out, notes what is and goes on.
    fn unless_left_out<T>(&mut self, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.kinds.is_some() && !self.exhausted => {
                // Files of other kinds were not looked into, so what changes these finds nothing.
                let is_of_others = |kind| self.kinds.is_some_and(|wanted| !wanted.contains(&kind));
                if !error.kind.missing_kind().is_some_and(is_of_others) {
                    self.left_out.push(error);
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Builds a kustomization; a component goes on with what its parent has gathered.
    fn folder(&mut self, file: &File, gathered: Gathered) -> Result<Gathered, Error> {
        self.read += 1;
        if self.read > MOST {
            return Err(self.exhaust(&file.path, Limit::Kustomizations(MOST)));
        }
        if self.open.len() >= DEEPEST {
            return Err(self.exhaust(&file.path, Limit::Levels(DEEPEST)));
        }
        self.open.push(file.root.clone());
        let filled = self.fill(file, gathered);
        self.open.pop();
        filled
    }

    fn fill(&mut self, file: &File, mut gathered: Gathered) -> Result<Gathered, Error> {
        for (at, path) in file.content.resources.iter().enumerate() {
            self.count(file)?;
            let added = self.resource(file, at, path, &mut gathered);
            self.unless_left_out(added)?;
        }
        let configured = self.configure(file, &mut gathered.config);
        self.unless_left_out(configured)?;
        for (sort, count) in [
            (GeneratorKind::ConfigMap, file.content.config_map_generator.len()),
            (GeneratorKind::Secret, file.content.secret_generator.len()),
        ] {
            for at in 0..count {
                let made = generate::generate(self.files, file, sort, at).and_then(|new| {
                    generate::absorb(&mut gathered.resources, new)
                        .map_err(|why| file.error(sort.key(), Some(at), why))
                });
                self.unless_left_out(made)?;
            }
        }
        for (at, path) in file.content.components.iter().enumerate() {
            self.count(file)?;
            let below = self.below(file, "components", at, path);
            let Some(component) = self.unless_left_out(below)? else { continue };
            if component.content.kind != "Component" {
                let kind = KustomizationError::NotAComponent { path: path.clone() };
                let wrong = file.error("components", Some(at), kind);
                self.unless_left_out(Err::<(), _>(wrong))?;
                continue;
            }
            gathered = self.folder(&component, gathered)?;
        }
        self.transform(file, &mut gathered)?;
        for (at, var) in file.content.vars.iter().enumerate() {
            let added = vars::add(&mut gathered.vars, var, &mut gathered.resources);
            self.unless_left_out(added.map_err(|why| file.error("vars", Some(at), why)))?;
        }
        Ok(gathered)
    }

    /// Counts an entry that is about to be read.
    fn count(&mut self, file: &File) -> Result<(), Error> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return Err(self.exhaust(&file.path, Limit::Entries(MOST_ENTRIES)));
        }
        Ok(())
    }

    /// Adds an object; one that is there already may be left out.
    fn add(
        &mut self,
        resources: &mut Vec<Resource>,
        resource: Resource,
        failed: impl Fn(ErrorKind) -> Error,
    ) -> Result<(), Error> {
        if resources.len() >= MOST_OBJECTS {
            self.exhausted = true;
            return Err(failed(Limit::Objects(MOST_OBJECTS).into()));
        }
        let added = append(resources, resource).map_err(|why| failed(why.into()));
        self.unless_left_out(added).map(drop)
    }

    /// Adds one entry of `resources`: a file, or a folder with a kustomization.
    fn resource(&mut self, file: &File, at: usize, path: &str, into: &mut Gathered) -> Result<(), Error> {
        let real = self.files.real(&file.root.join(path));
        if is_far(path) || real.as_ref().is_none_or(|real| self.files.is_folder(real)) {
            let below = self.below(file, "resources", at, path)?;
            if below.content.kind == "Component" {
                let kind = KustomizationError::Component { path: path.to_owned() };
                return Err(file.error("resources", Some(at), kind));
            }
            let gathered = self.folder(&below, Gathered::default())?;
            let failed = |why: ErrorKind| file.error("resources", Some(at), why);
            into.config.merge(&gathered.config).map_err(failed)?;
            vars::merge(&mut into.vars, gathered.vars).map_err(failed)?;
            for resource in gathered.resources {
                self.add(&mut into.resources, resource, failed)?;
            }
            return Ok(());
        }
        let failed = |why: ErrorKind| file.error("resources", Some(at), why);
        let (real, text) = load_text(self.files, &file.root, path).map_err(|why| failed(why.into()))?;
        let is_wanted = |kinds: &[&str]| kinds.iter().any(|kind| text.contains(&format!("kind: {kind}")));
        if !self.kinds.is_none_or(is_wanted) {
            return Ok(());
        }
        for resource in objects(&real, &text)? {
            self.add(&mut into.resources, resource, |why| Error::new(&real, 0, why))?;
        }
        Ok(())
    }

    /// The kustomization of a folder that another one names.
    fn below(&mut self, file: &File, key: &str, at: usize, path: &str) -> Result<File, Error> {
        let wrong = |why: FileError| file.error(key, Some(at), why);
        let entry = || path.to_owned();
        if is_far(path) {
            let remote = wrong(FileError::Remote { path: entry() });
            return Err(remote.hint("copy it into the project, or let `kubectl kustomize` build it"));
        }
        if Path::new(path).is_absolute() {
            return Err(wrong(FileError::Absolute { path: entry() }));
        }
        let Some(root) = self.files.real(&file.root.join(path)) else {
            return Err(wrong(FileError::NoFileOrFolder { path: entry() }));
        };
        if !self.files.is_folder(&root) {
            return Err(wrong(FileError::NotAFolder { path: entry() }));
        }
        if let Some(open) = self.open.iter().find(|open| open.starts_with(&root)) {
            return Err(wrong(FileError::Cycle { path: entry(), folder: open.clone() }));
        }
        self.read_file(&root)
    }

    fn read_file(&mut self, root: &Path) -> Result<File, Error> {
        let left_out = self.kinds.is_some().then_some(&mut self.left_out);
        kustomization::read(self.files, root, left_out)
    }

    /// Adds the default field specs, and those of `configurations` and `crds`.
    fn configure(&mut self, file: &File, config: &mut Config) -> Result<(), Error> {
        config.merge(&defaults::config()).map_err(|why| Error::new(&file.path, 0, why))?;
        for (key, list) in [("configurations", &file.content.configurations), ("crds", &file.content.crds)] {
            for (at, path) in list.iter().enumerate() {
                let failed = |why: FileError| file.error(key, Some(at), why);
                let (real, text) = load_text(self.files, &file.root, path).map_err(failed)?;
                let value = yaml::from_str(&text).map_err(|error| Error::yaml(&real, error))?;
                let more = if key == "crds" {
                    crds::config(&value).map_err(|why| Error::new(&real, 0, why))?
                } else {
                    // A file of comments only is an empty configuration.
                    let read: Option<Config> =
                        serde_json::from_value(value).map_err(|error| Error::form(&real, &error))?;
                    read.unwrap_or_default()
                };
                config.merge(&more).map_err(|why| Error::new(&real, 0, why))?;
            }
        }
        Ok(())
    }

    /// Changes the objects, in the order that kustomize has.
    fn transform(&mut self, file: &File, gathered: &mut Gathered) -> Result<(), Error> {
        let Gathered { resources, config, vars: _ } = gathered;
        let content = &file.content;
        let files = self.files;
        let said = |key: &str, at: Option<usize>, result: Result<(), ErrorKind>| {
            result.map_err(|why| file.error(key, at, why))
        };
        for at in 0..content.patches_strategic_merge.len() {
            self.step(file, resources, |all| patches::strategic(files, file, at, all))?;
        }
        for at in 0..content.patches.len() {
            self.step(file, resources, |all| patches::patch(files, file, at, all))?;
        }
        if !content.namespace.is_empty() {
            self.step(file, resources, |all| {
                let placing = Placing { specs: &config.namespace, ..Placing::default() };
                said("namespace", None, transform::namespace(all, &content.namespace, placing))
            })?;
        }
        for (key, affix, end, specs) in [
            ("namePrefix", &content.name_prefix, End::Prefix, &config.name_prefix),
            ("nameSuffix", &content.name_suffix, End::Suffix, &config.name_suffix),
        ] {
            if !affix.is_empty() {
                self.step(file, resources, |all| said(key, None, transform::affix(all, affix, end, specs)))?;
            }
        }
        for (at, label) in content.labels.iter().enumerate() {
            self.step(file, resources, |all| {
                said("labels", Some(at), transform::labels(all, label, config))
            })?;
        }
        self.step(file, resources, |all| {
            said("commonLabels", None, transform::common_labels(all, &content.common_labels, config))
        })?;
        self.step(file, resources, |all| {
            said("commonAnnotations", None, transform::annotations(all, &content.common_annotations, config))
        })?;
        for at in 0..content.patches_json6902.len() {
            self.step(file, resources, |all| patches::json6902(files, file, at, all))?;
        }
        for (at, replica) in content.replicas.iter().enumerate() {
            self.step(file, resources, |all| {
                said("replicas", Some(at), transform::replicas(all, replica, &config.replicas))
            })?;
        }
        for (at, image) in content.images.iter().enumerate() {
            self.step(file, resources, |all| {
                said("images", Some(at), images::images(all, image, &config.images))
            })?;
        }
        for at in 0..content.replacements.len() {
            self.step(file, resources, |all| replacements::replace(files, file, at, all))?;
        }
        let mut changes = 0;
        for at in transformers::in_order(file) {
            let described = self.unless_left_out(transformers::described(files, file, at))?;
            // A step each, so that none lets the objects grow without a look at their size.
            for one in described.into_iter().flatten() {
                changes += 1;
                if changes > MOST_CHANGES || one.growth() > LONGEST_NAME {
                    return Err(self.exhaust(&file.path, Limit::Changes(MOST_CHANGES)));
                }
                if one.weight().saturating_mul(resources.len()) > LARGEST {
                    return Err(self.exhaust(&file.path, Limit::Size(LARGEST / 1024 / 1024)));
                }
                self.step(file, resources, |all| transformers::change(files, (file, at), &one, all))?;
            }
        }
        Ok(())
    }

    /// One change of all objects. One that fails and may be left out changes nothing.
    fn step(
        &mut self,
        file: &File,
        resources: &mut Vec<Resource>,
        change: impl FnOnce(&mut Vec<Resource>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let before = self.kinds.is_some().then(|| resources.clone());
        let changed = change(resources);
        if let (Err(_), Some(before)) = (&changed, before) {
            *resources = before;
        }
        if resources.iter().map(|resource| size(&resource.object)).sum::<usize>() > LARGEST {
            return Err(self.exhaust(&file.path, Limit::Size(LARGEST / 1024 / 1024)));
        }
        self.unless_left_out(changed).map(drop)
    }
}

/// The objects of a manifest. The items of lists come after the other objects.
fn objects(file: &Path, text: &str) -> Result<Vec<Resource>, Error> {
    let documents = read::documents(text)
        .map_err(|error| Error::new(file, error.line, ErrorKind::Yaml { message: error.message }))?;
    let mut open: Vec<Resource> = documents
        .into_iter()
        .filter(|document| !document.value.as_object().is_some_and(Map::is_empty))
        .map(|document| Resource {
            object: document.value,
            empty: document.empty,
            file: file.to_owned(),
            ..Resource::default()
        })
        .collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(resource) = open.get_mut(at) {
        at += 1;
        check(file, &resource.object)?;
        let is_list = resource.kind().ends_with("List") && resource.object.get("items").is_some();
        if !is_list {
            found.push(std::mem::take(resource));
            continue;
        }
        match resource.object["items"].take() {
            Value::Null => {}
            Value::Array(items) => open.extend(items.into_iter().map(|object| Resource {
                object,
                file: file.to_owned(),
                ..Resource::default()
            })),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                return Err(Error::new(file, 0, ObjectError::Items));
            }
        }
    }
    Ok(found)
}

fn check(file: &Path, object: &Value) -> Result<(), Error> {
    let wrong = |kind: ObjectError| Err(Error::new(file, 0, kind));
    if !object.is_object() {
        return wrong(ObjectError::NotAMap);
    }
    let Some(kind) = object["kind"].as_str().filter(|kind| !kind.is_empty()) else {
        return wrong(ObjectError::NoKind);
    };
    let name = &object["metadata"]["name"];
    if !kind.ends_with("List") && (name.is_null() || read::text(name).is_empty()) {
        return wrong(ObjectError::NoName { kind: kind.to_owned() });
    }
    match null_in_list(object, "") {
        Some(path) => wrong(ObjectError::NullItem { kind: kind.to_owned(), name: read::text(name), path }),
        None => Ok(()),
    }
}

fn null_in_list(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Array(items) if items.iter().any(Value::is_null) => Some(path.to_owned()),
        Value::Array(items) => items.iter().find_map(|item| null_in_list(item, path)),
        Value::Object(map) => {
            map.iter().find_map(|(key, value)| null_in_list(value, &format!("{path}.{key}")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
