//! Errors of what a build reads: kustomizations, files, generators; and what it may need at most.

use std::fmt;
use std::path::PathBuf;

/// A limit of opdev that a build would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Kustomizations that lead to each other.
    Kustomizations(usize),
    /// Kustomizations that are in each other.
    Levels(usize),
    /// Files and folders that are named.
    Entries(usize),
    /// Described changes of one kustomization, or how long they make a name.
    Changes(usize),
    /// Objects of one kustomization.
    Objects(usize),
    /// MiB of the objects of one kustomization.
    Size(usize),
    /// Fields of the types of `crds`.
    TypeFields(usize),
    /// MiB that one replacement copies.
    Copied(usize),
    /// Levels of a value, or of the path to it.
    Depth,
    /// Parts of the path of a field; the number is how many there are.
    PathParts(usize),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Kustomizations(most) => write!(f, "more than {most} kustomizations lead to each other"),
            Limit::Levels(most) => write!(f, "more than {most} kustomizations are in each other"),
            Limit::Entries(most) => write!(f, "more than {most} files and folders are named"),
            Limit::Changes(most) => {
                write!(f, "its transformers make more than {most} changes, or names that are too long")
            }
            Limit::Objects(most) => write!(f, "there are more than {most} objects"),
            Limit::Size(most) => write!(f, "its objects grow to more than {most} MiB"),
            Limit::TypeFields(most) => write!(f, "more than {most} fields are to be read"),
            Limit::Copied(most) => write!(f, "it copies more than {most} MiB"),
            Limit::Depth => f.write_str("the value, or the path to it, is too deep"),
            Limit::PathParts(count) => write!(f, "a path of {count} parts is too long"),
        }
    }
}

/// Why the file of a kustomization cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KustomizationError {
    /// There is no such folder.
    NoFolder,
    /// The folder has no kustomization.
    Missing {
        /// The names that its file may have.
        names: &'static [&'static str],
    },
    /// The folder has more than one.
    Several {
        /// The names that its file may have.
        names: &'static [&'static str],
    },
    /// The file cannot be read.
    Unreadable {
        /// Why not.
        reason: String,
    },
    /// The file is empty, or something else than a map.
    NotAMap,
    /// The file says nothing but its kind and version.
    Empty,
    /// The kind is not one of kustomize.
    Kind {
        /// The kind.
        kind: String,
    },
    /// The version does not go with the kind.
    ApiVersion {
        /// The version.
        found: String,
        /// The version that goes with the kind.
        wanted: String,
    },
    /// A key that kustomize does not have.
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A key for which opdev would have to fetch or run something.
    Refused {
        /// The key.
        key: String,
        /// Why it is not built.
        reason: &'static str,
    },
    /// The value of a key has another form than kustomize expects.
    Value {
        /// The key.
        key: String,
        /// The error.
        message: String,
    },
    /// A transformer that is not built.
    Transformer {
        /// Its kind.
        kind: String,
    },
    /// A folder under `components` is not a component.
    NotAComponent {
        /// The entry.
        path: String,
    },
    /// A folder under `resources` is a component.
    Component {
        /// The entry.
        path: String,
    },
    /// `sortOptions` has the options of another order.
    LegacySortOptions,
    /// `sortOptions` has an order that does not exist.
    Order {
        /// The order.
        order: String,
    },
    /// An entry of `replicas` names no object.
    NoReplicas {
        /// The kinds that have replicas.
        kinds: Vec<String>,
        /// The name.
        name: String,
    },
    /// An entry of `images` is not a regular expression.
    ImagePattern {
        /// The name of the image.
        name: String,
        /// The error.
        message: String,
    },
    /// A file of `crds` is not a map.
    TypesNotAMap,
    /// A type of a file of `crds` refers to itself.
    RecursiveType {
        /// The name of the type.
        name: String,
    },
}

impl fmt::Display for KustomizationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KustomizationError::NoFolder => f.write_str("there is no such folder"),
            KustomizationError::Missing { names } => write!(f, "there is no {}", names.join(", no ")),
            KustomizationError::Several { names } => {
                write!(f, "there is more than one of {}", names.join(", "))
            }
            KustomizationError::Unreadable { reason } => f.write_str(reason),
            KustomizationError::NotAMap => f.write_str("it is empty, or no map"),
            KustomizationError::Empty => {
                f.write_str("it is empty: it names neither resources nor anything else")
            }
            KustomizationError::Kind { kind } => {
                write!(f, "kind {kind} is neither Kustomization nor Component")
            }
            KustomizationError::ApiVersion { found, wanted } => {
                write!(f, "apiVersion {found} should be {wanted}")
            }
            KustomizationError::UnknownKey { key } => write!(f, "kustomize knows no field {key}"),
            KustomizationError::Refused { key, reason } => write!(f, "{key}: {reason}"),
            KustomizationError::Value { key, message } => write!(f, "{key}: {message}"),
            KustomizationError::Transformer { kind } => write!(f, "opdev runs no {kind}"),
            KustomizationError::NotAComponent { path } => write!(f, "{path} is not of kind Component"),
            KustomizationError::Component { path } => {
                write!(f, "{path} is a component; it belongs under components")
            }
            KustomizationError::LegacySortOptions => {
                f.write_str("legacySortOptions are for the order legacy")
            }
            KustomizationError::Order { order } => write!(f, "order {order:?} is neither legacy nor fifo"),
            KustomizationError::NoReplicas { kinds, name } => {
                write!(f, "there is no {} {name:?}", kinds.join(", no "))
            }
            KustomizationError::ImagePattern { name, message } => {
                write!(f, "name {name:?} is no pattern: {message}")
            }
            KustomizationError::TypesNotAMap => {
                f.write_str("a map from names of types to their OpenAPI schemas is expected")
            }
            KustomizationError::RecursiveType { name } => {
                write!(f, "the definition {name} refers to itself")
            }
        }
    }
}

/// Why a file or folder that a kustomization names cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileError {
    /// The entry is a URL or a repository.
    Remote {
        /// The entry.
        path: String,
    },
    /// The entry is an absolute path.
    Absolute {
        /// The entry.
        path: String,
    },
    /// There is no such file.
    NoFile {
        /// The entry.
        path: String,
    },
    /// There is no such file, nor such a folder.
    NoFileOrFolder {
        /// The entry.
        path: String,
    },
    /// A folder where a file is needed.
    IsAFolder {
        /// The entry.
        path: String,
    },
    /// A file where a folder is needed.
    NotAFolder {
        /// The entry.
        path: String,
    },
    /// A file outside of the folder of the kustomization.
    Outside {
        /// The entry.
        path: String,
    },
    /// The file cannot be read.
    Unreadable {
        /// The entry.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The file is not UTF-8.
    NotText {
        /// The entry.
        path: String,
    },
    /// The folder is being built already.
    Cycle {
        /// The entry.
        path: String,
        /// The folder that is being built.
        folder: PathBuf,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Remote { path } => {
                write!(f, "{path} would have to be fetched, which opdev does not do")
            }
            FileError::Absolute { path } => {
                write!(f, "{path} is absolute; a path from this folder is needed")
            }
            FileError::NoFile { path } => write!(f, "there is no file {path}"),
            FileError::NoFileOrFolder { path } => write!(f, "there is no file or folder {path}"),
            FileError::IsAFolder { path } => write!(f, "{path} is a folder; a file is needed here"),
            FileError::NotAFolder { path } => write!(f, "{path} is no folder"),
            FileError::Outside { path } => write!(
                f,
                "{path} is not below the folder of this kustomization, and kustomize reads no file outside of it"
            ),
            FileError::Unreadable { path, reason } => write!(f, "{path} cannot be read: {reason}"),
            FileError::NotText { path } => write!(f, "{path} is no text (it is not UTF-8)"),
            FileError::Cycle { path, folder } => {
                write!(f, "{path} leads back to {}, which is being built", folder.display())
            }
        }
    }
}

/// Why an entry of `configMapGenerator` or `secretGenerator` cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeneratorError {
    /// The entry has no name.
    NoName,
    /// A ConfigMap with a type.
    ConfigMapType,
    /// A literal that is not `key=value`.
    Literal {
        /// The text before the first `=`.
        key: String,
    },
    /// An entry of `files` that is neither `path` nor `key=path`.
    FileForm {
        /// The entry.
        entry: String,
    },
    /// A key that two entries give.
    KeyTwice {
        /// The key.
        key: String,
    },
    /// There is no object to merge with or to replace.
    NothingThere {
        /// Kind, namespace and name of the object.
        object: String,
    },
    /// There is such an object, and the entry does not say what to do with it.
    ThereAlready {
        /// Kind, namespace and name of the object.
        object: String,
    },
    /// Several objects have, or had, that name.
    Several {
        /// Kind, namespace and name of the object.
        object: String,
    },
}

impl fmt::Display for GeneratorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GeneratorError::NoName => f.write_str("it has no name"),
            GeneratorError::ConfigMapType => f.write_str("a ConfigMap has no type"),
            GeneratorError::Literal { key } => {
                write!(f, "the literal {key:?} is not of the form key=value")
            }
            GeneratorError::FileForm { entry } => {
                write!(f, "files: {entry:?} is not of the form path or key=path")
            }
            GeneratorError::KeyTwice { key } => write!(f, "the key {key} is there twice"),
            GeneratorError::NothingThere { object } => {
                write!(f, "there is no {object} to merge with or to replace")
            }
            GeneratorError::ThereAlready { object } => {
                write!(f, "{object} is there already; its behavior must be merge or replace")
            }
            GeneratorError::Several { object } => write!(f, "several objects are, or were, {object}"),
        }
    }
}
