//! Files that no image should have: keys and credentials, by their name or by what they hold.

use serde_json::Value;

/// The sort of secret that a file seems to be, which nobody who pulls the image should get; `None` for most
/// files.
pub fn secret_in(path: &str, content: &[u8]) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let by_name = match name {
        "kubeconfig" => Some("a kubeconfig"),
        ".netrc" | ".dockercfg" | ".dockerconfigjson" | ".pgpass" => Some("a file of logins"),
        ".env" => Some("a file of variables for one machine"),
        _ if name.starts_with(".env.") => Some("a file of variables for one machine"),
        _ if name.ends_with(".kubeconfig") => Some("a kubeconfig"),
        _ if [".p12", ".pfx", ".jks"].iter().any(|end| name.ends_with(end)) => Some("a store of keys"),
        _ => None,
    };
    by_name.or_else(|| by_content(&String::from_utf8_lossy(content)))
}

fn by_content(text: &str) -> Option<&'static str> {
    // A key in YAML is indented.
    if text
        .lines()
        .map(str::trim)
        .any(|line| line.starts_with("-----BEGIN ") && line.ends_with("PRIVATE KEY-----"))
    {
        return Some("a private key");
    }
    let top = |word: &str| {
        text.lines().any(|line| line.trim_end() == word || line.starts_with(&format!("{word} ")))
    };
    if top("kind: Config") && (top("users:") || top("clusters:")) {
        return Some("a kubeconfig");
    }
    let is_logins = || {
        let value: Option<Value> = serde_json::from_str(text).ok();
        value.is_some_and(|value| value["auths"].is_object())
    };
    (text.trim_start().starts_with('{') && is_logins()).then_some("a file of logins")
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
        let nested = b"tls:\n  key: |\n    -----BEGIN RSA PRIVATE KEY-----\n    MHc\n";
        assert_eq!(secret_in("charts/web/values.yaml", nested), Some("a private key"));
        assert_eq!(
            secret_in("a/config.json", b"{\"auths\":{\"r\":{\"auth\":\"eA\"}}}"),
            Some("a file of logins")
        );
        for name in ["charts/web/.env", "charts/web/.env.local"] {
            assert_eq!(secret_in(name, b"A=1"), Some("a file of variables for one machine"));
        }
        for plain in
            ["kind: ConfigMap\nusers: 1\n", "key: {{ genPrivateKey \"rsa\" }}\n", "kind: Config\n", "{}"]
        {
            assert_eq!(secret_in("a/b.yaml", plain.as_bytes()), None, "{plain}");
        }
    }
}
