//! Reads a folder into a `FileSet`: the one place of this package that touches the disk.

#![allow(clippy::disallowed_methods)]

use super::FileSet;
use super::ignore::Rules;
use std::fs;
use std::io;
use std::path::Path;

/// The largest file Helm takes.
const LIMIT: u64 = 5 * 1024 * 1024;

/// Reads a chart's folder, symlinks followed; what `.helmignore` names is not read.
/// A `.tgz` given instead of a folder yields its files.
pub fn read_dir(folder: &Path) -> io::Result<FileSet> {
    if folder.is_file() {
        let data = fs::read(folder)?;
        return super::archive::unpack(&data, &super::archive::Budget::new())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
    }
    let text = match fs::read_to_string(folder.join(".helmignore")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    // A broken .helmignore is reported when the chart is loaded.
    let rules = Rules::parse(&text).unwrap_or_default();
    let mut files = FileSet::new();
    walk(folder, "", &rules, &mut files, 0)?;
    Ok(files)
}

fn walk(folder: &Path, prefix: &str, rules: &Rules, files: &mut FileSet, depth: usize) -> io::Result<()> {
    if depth > 40 {
        return Err(io::Error::other(format!("{}: folders are nested too deep", folder.display())));
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{prefix}{}", name.to_string_lossy());
        let full = entry.path();
        let meta = fs::metadata(&full)?;
        let keep = path == ".helmignore";
        if !keep && rules.ignores_one(&path, meta.is_dir()) {
            continue;
        }
        if meta.is_dir() {
            walk(&full, &format!("{path}/"), rules, files, depth + 1)?;
        } else if !meta.is_file() {
            let message = format!("cannot load irregular file {path} as it has file mode type bits set");
            return Err(io::Error::other(message));
        } else if meta.len() > LIMIT {
            let name = name.to_string_lossy();
            let message = format!("chart file \"{name}\" is larger than the maximum file size {LIMIT}");
            return Err(io::Error::other(message));
        } else {
            files.insert(path, fs::read(&full)?);
        }
    }
    Ok(())
}
