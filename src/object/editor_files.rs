//! Names of the files that editors and file managers keep beside those that a user edits: locks, backups, what is half saved.

/// Whether a file of this name is an editor's own, which its user has never meant as content.
pub fn is_editors(name: &str) -> bool {
    let hidden = name.strip_prefix('.');
    // Emacs: a lock is a link that leads nowhere; what is not saved yet; the version before.
    let emacs = name.starts_with(".#") || (name.len() > 2 && name.starts_with('#') && name.ends_with('#'));
    // Vim: swap files; whether it may write into a folder, it tries with a number.
    let swap = hidden.and_then(|rest| rest.rsplit_once('.')).is_some_and(|(_, end)| {
        end.len() == 3 && end.starts_with("sw") && end.ends_with(|c: char| c.is_ascii_lowercase())
    });
    let probe = name.len() <= 5 && name.parse::<u32>().is_ok_and(|n| n >= 4913 && (n - 4913) % 123 == 0);
    let safe_write = ["___jb_tmp___", "___jb_old___", ".kate-swp"].iter().any(|end| name.ends_with(end));
    let of_desktops = name == ".DS_Store" || name.starts_with("._") || name.starts_with(".goutputstream-");
    emacs || swap || probe || safe_write || of_desktops || name.ends_with('~')
}

#[cfg(test)]
mod tests {
    use super::is_editors;

    #[test]
    fn what_editors_leave_is_told_from_content() {
        for name in [
            ".#deployment.yaml",
            "#deployment.yaml#",
            "deployment.yaml~",
            "deployment.yaml.~1~",
            ".deployment.yaml.swp",
            ".deployment.yaml.swx",
            "4913",
            "5036",
            "deployment.yaml___jb_tmp___",
            ".deployment.yaml.kate-swp",
            ".DS_Store",
            "._deployment.yaml",
        ] {
            assert!(is_editors(name), "{name}");
        }
        for name in
            ["deployment.yaml", "_helpers.tpl", ".helmignore", "#", "##", "4914", "8080", "x.swp.yaml", "swp"]
        {
            assert!(!is_editors(name), "{name}");
        }
    }
}
