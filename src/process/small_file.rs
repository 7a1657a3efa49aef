//! Files that came with a project, read before anybody has trusted it.

use std::io::Read as _;
use std::path::Path;

/// Bytes of a file; what is larger was not written by hand.
const MOST: u64 = 8 << 20;

/// A file's bytes; nothing where it is too large for what somebody wrote, or no plain file, such as a link to a device or a
/// pipe that never ends.
pub fn small_file(path: &Path) -> Option<Vec<u8>> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    // Files of the kernel say that they are empty, whatever they hold.
    let read = std::fs::File::open(path).ok()?.take(MOST + 1).read_to_end(&mut bytes).ok()?;
    (read as u64 <= MOST).then_some(bytes)
}

/// The same as text; nothing where it is no UTF-8.
pub fn small_text(path: &Path) -> Option<String> {
    String::from_utf8(small_file(path)?).ok()
}

/// Why a file has no such text, in words.
pub fn unreadable(file: &str) -> String {
    format!(
        "{file} cannot be read: it is missing, forbidden, larger than {} MiB, no plain file, or no UTF-8",
        MOST >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_and_what_is_too_large_has_no_text() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("main.go"), "package main\n").unwrap();
        assert_eq!(small_text(&at("main.go")).as_deref(), Some("package main\n"));
        std::os::unix::fs::symlink("main.go", at("link.go")).unwrap();
        assert_eq!(small_text(&at("link.go")).as_deref(), Some("package main\n"));
        std::os::unix::fs::symlink("/dev/zero", at("endless.go")).unwrap();
        assert_eq!(small_text(&at("endless.go")), None);
        std::fs::File::create(at("large.go")).unwrap().set_len(MOST + 1).unwrap();
        assert_eq!(small_text(&at("large.go")), None);
    }
}
