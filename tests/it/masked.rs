//! Texts without what differs from run to run, so that a snapshot can show them.

use regex::Regex;
use std::path::Path;

/// A text whose ports of this machine are `PORT` and whose folders among the temporary files are `TMP`.
pub(crate) fn masked(text: &str) -> String {
    let text = Regex::new(r"127\.0\.0\.1:\d+").unwrap().replace_all(text, "127.0.0.1:PORT").into_owned();
    let temporary = std::env::temp_dir();
    let real = temporary.canonicalize().unwrap();
    // The longer one first: the other may be its end.
    [real.as_path(), temporary.as_path()].iter().fold(text, |text, folder| without(&text, folder))
}

/// A text with `TMP` for each folder that lies in this one.
fn without(text: &str, folder: &Path) -> String {
    let folder = regex::escape(folder.to_str().unwrap().trim_end_matches('/'));
    Regex::new(&format!(r"{folder}/[\w.-]+")).unwrap().replace_all(text, "TMP").into_owned()
}

#[test]
fn ports_and_temporary_folders_are_masked() {
    let folder = std::env::temp_dir().join("demo-x1Y2");
    let text = format!("at https://127.0.0.1:40129 in {}/charts", folder.display());
    assert_eq!(masked(&text), "at https://127.0.0.1:PORT in TMP/charts");
}
