//! Files that no image should have: keys and credentials, by their name or by what they hold.

/// What a file seems to be that whoever pulls the image should not get; `None` for most files.
pub fn secret_in(path: &str, content: &[u8]) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let by_name = match name {
        "kubeconfig" => Some("a kubeconfig"),
        ".netrc" | ".dockercfg" | ".dockerconfigjson" | ".pgpass" => Some("a file of logins"),
        ".env" => Some("a file of variables for one machine"),
        _ if name.ends_with(".kubeconfig") => Some("a kubeconfig"),
        _ if [".p12", ".pfx", ".jks"].iter().any(|end| name.ends_with(end)) => Some("a store of keys"),
        _ => None,
    };
    by_name.or_else(|| by_content(&String::from_utf8_lossy(content)))
}

fn by_content(text: &str) -> Option<&'static str> {
    let mut lines = text.lines().map(str::trim_end);
    if lines.clone().any(|line| line.starts_with("-----BEGIN ") && line.ends_with("PRIVATE KEY-----")) {
        return Some("a private key");
    }
    let top = |word: &str| {
        text.lines().any(|line| line.trim_end() == word || line.starts_with(&format!("{word} ")))
    };
    if top("kind: Config") && (top("users:") || top("clusters:")) {
        return Some("a kubeconfig");
    }
    let is_logins = |line: &str| line.trim_start().starts_with("\"auths\"");
    if text.trim_start().starts_with('{') && lines.any(is_logins) {
        return Some("a file of logins");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_credentials_are_seen_and_templates_of_them_are_not() {
        let config = b"apiVersion: v1\nkind: Config\nclusters: []\nusers:\n- name: a\n";
        assert_eq!(secret_in("a/admin.yaml", config), Some("a kubeconfig"));
        assert_eq!(secret_in("a/kubeconfig", b""), Some("a kubeconfig"));
        let key = b"# mine\n-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\n";
        assert_eq!(secret_in("a/tls.key", key), Some("a private key"));
        assert_eq!(secret_in("a/config.json", b"{\n  \"auths\": {}\n}"), Some("a file of logins"));
        assert_eq!(secret_in("charts/web/.env", b"A=1"), Some("a file of variables for one machine"));
        for plain in
            ["kind: ConfigMap\nusers: 1\n", "key: {{ genPrivateKey \"rsa\" }}\n", "kind: Config\n", "{}"]
        {
            assert_eq!(secret_in("a/b.yaml", plain.as_bytes()), None, "{plain}");
        }
    }
}
