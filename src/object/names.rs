//! Rules for names and labels, with the texts of apimachinery. Each function returns what is wrong. Also
//! which names of files are those of editors: locks, backups, what is half saved.

fn regex_error(rule: &str, regex: &str, examples: &[&str]) -> String {
    let shown: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{regex}')", shown.join(" or "))
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} bytes")
}

fn edges(text: &str, edge: fn(u8) -> bool, inner: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty() && edge(bytes[0]) && edge(bytes[bytes.len() - 1]) && bytes.iter().all(|b| inner(*b))
}

fn lower(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn lower_or_dash(b: u8) -> bool {
    lower(b) || b == b'-'
}

fn alphanumeric(b: u8) -> bool {
    b.is_ascii_alphanumeric()
}

fn qualified(b: u8) -> bool {
    alphanumeric(b) || matches!(b, b'-' | b'_' | b'.')
}

/// A lowercase RFC 1123 label, such as a namespace's name.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push(too_long(63));
    }
    if !edges(text, lower, lower_or_dash) {
        let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
        errors.push(regex_error(rule, "[a-z0-9]([-a-z0-9]*[a-z0-9])?", &["my-name", "123-abc"]));
    }
    errors
}

/// A lowercase RFC 1123 subdomain, such as most objects' names.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 253 {
        errors.push(too_long(253));
    }
    if !text.split('.').all(|part| edges(part, lower, lower_or_dash)) {
        let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
        let regex = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
        errors.push(regex_error(rule, regex, &["example.com"]));
    }
    errors
}

/// A DNS-1035 label, such as a Service's name.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push(too_long(63));
    }
    if !edges(text, lower, lower_or_dash) || text.as_bytes()[0].is_ascii_digit() {
        let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
        errors.push(regex_error(rule, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"]));
    }
    errors
}

/// The key of a label or annotation: a name, with an optional subdomain before a slash.
pub fn label_key(text: &str) -> Vec<String> {
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    const REGEX: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
    let shape = || regex_error(RULE, REGEX, &["MyName", "my.name", "123-abc"]);
    let mut errors = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(
                    dns1123_subdomain(prefix).into_iter().map(|error| format!("prefix part {error}")),
                );
            }
            name
        }
        _ => {
            let tail = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            errors.push(format!("a valid label key {} {tail}", shape()));
            return errors;
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push(format!("name part {}", too_long(63)));
    }
    if !edges(name, alphanumeric, qualified) {
        errors.push(format!("name part {}", shape()));
    }
    errors
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 63 {
        errors.push(too_long(63));
    }
    if !text.is_empty() && !edges(text, alphanumeric, qualified) {
        let rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
        let regex = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
        errors.push(regex_error(rule, regex, &["MyValue", "my_value", "12345"]));
    }
    errors
}

/// Returns true if a file of this name is an editor's own, which its user has never meant as content.
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
    use super::*;

    #[test]
    fn good_names_pass() {
        assert!(dns1123_label("web-0").is_empty());
        assert!(dns1123_subdomain("crd.example.com").is_empty());
        assert!(dns1035_label("web").is_empty());
        assert!(label_key("app.kubernetes.io/name").is_empty());
        assert!(label_value("").is_empty() && label_value("v1.2_3").is_empty());
    }

    #[test]
    fn bad_names_say_why() {
        assert_eq!(
            dns1123_label("Web"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(dns1035_label("1a").len(), 1);
        assert_eq!(label_key("/x"), ["prefix part must be non-empty"]);
        assert!(label_key("a/b/c")[0].starts_with("a valid label key must consist of"));
        assert_eq!(label_key("").len(), 2);
        assert_eq!(label_value("-a").len(), 1);
        assert_eq!(dns1123_subdomain("a..b").len(), 1);
    }

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
