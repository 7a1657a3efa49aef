//! Masks the text of manifests and configuration files, line by line, so that a broken one is masked, too.
//! Pure; everything that is not secret, comments and blank lines included, stays as it is.

use super::{MASK, REFERENCE, is_secret_name, json_text};
use std::ops::Range;

/// Masks the Secret documents of a manifest and the secret-named fields of the others; everything else,
/// comments and blank lines included, stays as it is. Works on the text, so that a broken document is masked,
/// too.
pub fn manifest(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut document: Vec<&str> = Vec::new();
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            mask_document(&document, &mut out);
            document.clear();
            out.push_str(line);
        } else {
            document.push(line);
        }
    }
    mask_document(&document, &mut out);
    out
}

fn mask_document(document: &[&str], out: &mut String) {
    let first =
        document.iter().map(|line| line.trim()).find(|line| !line.is_empty() && !line.starts_with('#'));
    if !first.is_some_and(|line| line.starts_with('{')) {
        return mask_lines(document, out);
    }
    out.push_str(&json_text(&document.concat()).unwrap_or_else(|| MASK.to_owned()));
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Masks the text of a configuration file, as one finds it in a ConfigMap.
pub(super) fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    mask_lines(&text.split_inclusive('\n').collect::<Vec<_>>(), &mut out);
    out
}

fn mask_lines(lines: &[&str], out: &mut String) {
    let data = secret_data(lines);
    let schema = lines.iter().any(|line| line.starts_with("kind: CustomResourceDefinition"));
    // Lines deeper than this belong to a masked value.
    let mut below: Option<usize> = None;
    // Lines deeper than this stand under a secret name.
    let mut under: Option<usize> = None;
    let mut env_secret = false;
    for (at, line) in lines.iter().enumerate() {
        let content = line.trim_start();
        let (indent, column, blank) = (indent(line), column(line), content.is_empty());
        if below.is_some_and(|below| blank || indent > below) {
            continue;
        }
        below = None;
        under =
            under.filter(|under| blank || indent > *under || (indent == *under && content.starts_with("- ")));
        let (name, value) = (key(content), after_colon(content));
        if name == "name" {
            env_secret = is_secret_name(value.trim_matches(['"', '\'']));
        }
        let comment = blank || content.starts_with('#');
        let hide = if data.iter().any(|data| data.contains(&at)) || is_flow_secret(content) {
            !comment
        } else if under.is_some() {
            !comment && !REFERENCE.contains(&name) && (name.is_empty() || !value.is_empty())
        } else if name == "value" {
            env_secret
        } else {
            is_secret_name(name) && !["", "true", "false", "null", "\"\"", "''", "{}", "[]"].contains(&value)
        };
        if hide {
            out.push_str(&masked_line(line));
            below = Some(column);
            continue;
        }
        if under.is_none()
            && !schema
            && value.is_empty()
            && is_secret_name(name)
            && !refers(&lines[at + 1..], column)
        {
            under = Some(column);
        }
        out.push_str(&assignment(line).unwrap_or_else(|| (*line).to_owned()));
    }
}

/// The lines that hold the data of Secrets, those in lists included.
fn secret_data(lines: &[&str]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let blank = |line: &str| line.trim().is_empty();
    for (at, line) in lines.iter().enumerate() {
        let content = line.trim_start();
        let kind = after_colon(content).split('#').next().unwrap_or_default();
        if key(content) != "kind" || kind.trim().trim_matches(['"', '\'', ',']) != "Secret" {
            continue;
        }
        let own = column(line);
        let mut start = at;
        while start > 0 && (blank(lines[start]) || indent(lines[start]) >= own) {
            let above = lines[start - 1];
            if !blank(above) && indent(above) < own && column(above) != own {
                break;
            }
            start -= 1;
        }
        let outside = |line: &&str| !blank(line) && indent(line) < own;
        let end = lines[at + 1..].iter().position(outside).map_or(lines.len(), |count| at + 1 + count);
        for data in start..end {
            let content = lines[data].trim_start();
            if column(lines[data]) != own || !["data", "stringData"].contains(&key(content)) {
                continue;
            }
            let inside = |line: &&str| blank(line) || indent(line) > own;
            let count = lines[data + 1..end].iter().take_while(|line| inside(line)).count();
            found.push(data + usize::from(after_colon(content).is_empty())..data + 1 + count);
        }
    }
    found
}

/// Returns true if the lines that are deeper than a column name the place of a secret.
fn refers(lines: &[&str], column: usize) -> bool {
    lines.iter().take_while(|line| line.trim().is_empty() || indent(line) > column).any(|line| {
        let content = line.trim_start();
        ["secretName", "existingSecret"].contains(&key(content))
            && !after_colon(content).trim_matches(['"', '\'']).is_empty()
    })
}

/// Returns true if a line holds a whole Secret in braces.
fn is_flow_secret(content: &str) -> bool {
    content.contains('{')
        && content.contains("Secret")
        && content.to_lowercase().contains("data")
        && content.contains("kind")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Where the key of a line stands, a list's dashes left out.
fn column(line: &str) -> usize {
    let mut rest = line.trim_start();
    while let Some(inner) = rest.strip_prefix("- ") {
        rest = inner.trim_start();
    }
    line.len() - rest.len()
}

/// The key of a `key: value` line, a list's dash left out; empty where there is none.
fn key(content: &str) -> &str {
    let content = &content[column(content)..];
    match content.split_once(':') {
        Some((key, rest)) if rest.is_empty() || rest.starts_with([' ', '\n', '\r', '\t']) => {
            key.trim_matches(['"', '\''])
        }
        _ => "",
    }
}

fn after_colon(content: &str) -> &str {
    content.split_once(':').map_or("", |(_, value)| value.trim())
}

fn masked_line(line: &str) -> String {
    let end = if line.ends_with('\n') { "\n" } else { "" };
    if key(line.trim_start()).is_empty() {
        return format!("{}{MASK}{end}", &line[..column(line)]);
    }
    let head = line.split_once(':').map_or(line.trim_end(), |(head, _)| head);
    format!("{head}: {MASK}{end}")
}

/// A line or word such as `db.password=x` or `--token=x` without its value; `None` where it is none.
pub(super) fn assignment(line: &str) -> Option<String> {
    let (head, value) = line.split_once('=')?;
    let name = head[column(head)..].trim().trim_start_matches(['"', '\'']);
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let end = if line.ends_with('\n') { "\n" } else { "" };
    (plain && is_secret_name(name) && !value.trim().is_empty()).then(|| format!("{head}={MASK}{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const SECRETS: [&str; 3] = ["hunter2", "aHVudGVyMg==", "swordfish"];

    fn masked(text: &str) -> String {
        let masked = manifest(text);
        assert!(!SECRETS.iter().any(|secret| masked.contains(secret)), "{masked}");
        masked
    }

    #[test]
    fn a_secret_inside_a_list_loses_its_data_only() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  data:\n    a: aHVudGVyMg==\n  kind: Secret\n  type: Opaque\n- kind: ConfigMap\n  data:\n    mode: fast\n- kind: Secret\n  stringData: {b: swordfish}\n";
        let masked = masked(text);
        expect![[r#"
            apiVersion: v1
            kind: List
            items:
            - apiVersion: v1
              data:
                a: ••••••
              kind: Secret
              type: Opaque
            - kind: ConfigMap
              data:
                mode: fast
            - kind: Secret
              stringData: ••••••
        "#]]
        .assert_eq(&masked);
    }

    #[test]
    fn quoted_keys_and_braces_hide_nothing_from_it() {
        masked("\"kind\": Secret\n\"data\":\n  \"a\": aHVudGVyMg==\n");
        masked("'kind': \"Secret\"\n'stringData':\n  swordfish\n");
        masked("items:\n- {kind: Secret, data: {a: aHVudGVyMg==}}\n");
        masked("{kind: Secret, data: {a: aHVudGVyMg==}}\n");
    }

    #[test]
    fn everything_below_a_secret_name_goes_but_references_stay() {
        let text = "kind: Web\nspec:\n  credentials:\n    user: swordfish\n    key: hunter2\n  passwords: 3\n  adminPassword:\n  - hunter2\n  volumes:\n  - secret:\n      secretName: web-auth\n      items:\n      - key: tls.crt\n  automountServiceAccountToken: false\n";
        let masked = masked(text);
        expect![[r#"
            kind: Web
            spec:
              credentials:
                user: ••••••
                key: ••••••
              passwords: 3
              adminPassword:
              - ••••••
              volumes:
              - secret:
                  secretName: web-auth
                  items:
                  - key: tls.crt
              automountServiceAccountToken: false
        "#]]
        .assert_eq(&masked);
        let types = "kind: CustomResourceDefinition\nproperties:\n  password:\n    type: string\n";
        assert_eq!(manifest(types), types);
    }

    #[test]
    fn assignments_lose_their_values() {
        assert_eq!(lines("db.password=hunter2\nmode=fast\n"), format!("db.password={MASK}\nmode=fast\n"));
        assert_eq!(lines("args:\n- --token=hunter2\n"), format!("args:\n- --token={MASK}\n"));
        assert_eq!(assignment("a password=x"), None);
    }
}
