//! The user's own `config.yaml` on clusters: `allowContexts`, the contexts that may be written to although
//! they are not clearly local. A project's file cannot say so: it may come from anybody. Keys and colours are
//! read in `project/preferences`.

use crate::read;
use anyhow::{Context as _, Result, bail};
use opdev_object::yaml::{self, Kind, Node};
use std::path::{Path, PathBuf};

/// The user's folder for settings, as the environment names it: `$XDG_CONFIG_HOME/opdev`, else
/// `~/.config/opdev`.
pub fn folder() -> Option<PathBuf> {
    let full = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = full("XDG_CONFIG_HOME").or_else(|| Some(full("HOME")?.join(".config")));
    config.map(|folder| folder.join("opdev"))
}

/// The user's folder for what is remembered, as the environment names it: `$XDG_STATE_HOME/opdev`, else
/// `~/.local/state/opdev`.
pub fn state_folder() -> Option<PathBuf> {
    let full = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = full("XDG_STATE_HOME").or_else(|| Some(full("HOME")?.join(".local/state")));
    state.map(|folder| folder.join("opdev"))
}

/// The contexts that the user allows opdev to write to; none where there is no such file or setting.
///
/// # Errors
/// Where the file cannot be read, or the setting is no list of names.
pub fn allow_contexts() -> Result<Vec<String>> {
    folder().map_or_else(|| Ok(Vec::new()), |folder| read(&folder.join("config.yaml")))
}

fn read(path: &Path) -> Result<Vec<String>> {
    let text = match read::text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    // Whatever else is wrong with it is told on screen, with its place.
    let Ok(node) = yaml::parse(&text) else { return Ok(Vec::new()) };
    let Kind::Mapping(sections) = &node.kind else { return Ok(Vec::new()) };
    let Some((_, value)) = sections.iter().find(|(key, _)| key.as_str() == Some("allowContexts")) else {
        return Ok(Vec::new());
    };
    let place = || format!("{}:{}:{}", path.display(), value.line, value.column);
    let names: Option<Vec<String>> = match &value.kind {
        Kind::Null => Some(Vec::new()),
        Kind::Sequence(names) => names.iter().map(Node::to_text).collect(),
        Kind::Bool(_)
        | Kind::Int(_)
        | Kind::Uint(_)
        | Kind::Float(_)
        | Kind::String(_)
        | Kind::Mapping(_) => None,
    };
    match names {
        Some(names) => Ok(names),
        None => bail!("{}: allowContexts is a list of names of contexts", place()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_a_list_of_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        assert_eq!(read(&path).unwrap(), Vec::<String>::new());
        std::fs::write(&path, "theme: dark\nallowContexts: [staging, 5]\n").unwrap();
        assert_eq!(read(&path).unwrap(), ["staging", "5"]);
        std::fs::write(&path, "allowContexts: staging\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("config.yaml:1:16: allowContexts is a list"));
    }
}
