//! The file of a draft: in a folder that only its owner may enter, gone with the draft, also when a task panics.

use anyhow::{Context as _, Result, anyhow};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A file for the editor.
#[derive(Debug)]
pub(crate) struct DraftFile {
    folder: PathBuf,
    path: PathBuf,
}

impl DraftFile {
    /// Creates a file with a name that editors know as YAML.
    ///
    /// # Errors
    /// Where the folder for temporary files cannot be written to.
    pub(crate) fn create(name: &str, text: &str) -> Result<DraftFile> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| anyhow!("no random numbers for a file's name: {error}"))?;
        let random = random.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let folder = std::env::temp_dir().join(format!("opdev-{random}"));
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect();
        let path = folder.join(format!("{name}.yaml"));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt as _;
            builder.mode(0o700);
        }
        builder.create(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        let file = DraftFile { folder, path };
        file.write(text)?;
        Ok(file)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces its text.
    pub(crate) fn write(&self, text: &str) -> Result<()> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let write = || options.open(&self.path)?.write_all(text.as_bytes());
        write().with_context(|| format!("{} cannot be written", self.path.display()))
    }

    /// Its text.
    pub(crate) fn read(&self) -> Result<String> {
        std::fs::read_to_string(&self.path).with_context(|| format!("{} cannot be read", self.path.display()))
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        // With it goes what the editor left beside it.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn it_is_private_and_goes_with_its_draft_also_in_a_panic() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = DraftFile::create("Secret-a/b", "data: {}\n").unwrap();
        let path = file.path().to_owned();
        assert!(path.ends_with("Secret-a-b.yaml"), "{}", path.display());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        std::fs::write(path.with_extension("swp"), "data").unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _file = file;
            panic!("on purpose");
        }));
        assert!(panicked.is_err() && !path.exists() && !path.parent().unwrap().exists());
    }
}
