//! The trace of an operator in Python: a `sitecustomize` module, which Python loads before the program's own
//! modules. It is written below a cache folder and named in `PYTHONPATH`; the project's own folder stays as
//! it is.

use super::overlay::{OverlayError, kept};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The environment variable that names the folders of modules.
pub const PATH: &str = "PYTHONPATH";
/// The name under which Python looks for such a module.
const NAME: &str = "sitecustomize.py";

/// Words of commands that start Python.
const STARTERS: [&str; 8] = ["kopf", "python", "uv", "uvx", "poetry", "pipenv", "pdm", "hatch"];

/// Returns true if a command starts a program in Python, by its words.
pub fn is_python(command: &[String]) -> bool {
    command.iter().any(|word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        STARTERS.contains(&name) || word.ends_with(".py")
    })
}

/// Writes the module below `cache`; the answer is what `PYTHONPATH` has to say, with what it says already.
///
/// # Errors
/// Where the module cannot be written.
pub fn search_path(cache: &Path, already: Option<&OsStr>) -> Result<String, OverlayError> {
    let file = kept(cache, NAME, include_str!("kopf.py"))?;
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    let more = already.filter(|path| !path.is_empty()).map(std::env::split_paths);
    let all: Vec<PathBuf> = std::iter::once(folder.clone()).chain(more.into_iter().flatten()).collect();
    let joined = std::env::join_paths(all).unwrap_or_else(|_| folder.into_os_string());
    Ok(joined.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_python_are_known_by_their_words() {
        let is = |text: &str| is_python(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for command in
            ["kopf run op.py", ".venv/bin/kopf run", "python3.12 -m kopf run x", "uv run kopf", "./op.py"]
        {
            assert!(is(command), "{command}");
        }
        for command in ["target/debug/op", "java -jar op.jar", "sh op.sh"] {
            assert!(!is(command), "{command}");
        }
    }

    #[test]
    fn the_module_comes_before_the_folders_that_are_named_already() {
        let cache = tempfile::tempdir().unwrap();
        let path = search_path(cache.path(), Some(OsStr::new("/a:/b"))).unwrap();
        let (first, rest) = path.split_once(':').unwrap();
        assert_eq!(rest, "/a:/b");
        assert!(Path::new(first).starts_with(cache.path()) && Path::new(first).join(NAME).is_file());
        assert_eq!(search_path(cache.path(), None).unwrap(), first);
    }
}
