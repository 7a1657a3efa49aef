//! Answers of servers of charts and images, to be mutated: an index, a manifest, an index of images, tags, a
//! config, a token, a challenge, and the files of Helm and Docker.

use crate::random::Random;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A text that is well-formed, behind the byte that says what it is.
pub fn text(random: &mut Random) -> Vec<u8> {
    let texts = [
        (
            "i",
            "apiVersion: v1\nentries:\n  x:\n  - {name: x, version: 1.0.0, urls: [x-1.0.0.tgz], digest: DIGEST}\n  - {name: x, version: 1.1.0-rc.1+b, urls: ['http://127.0.0.1:1/x.tgz']}\n  y: []\n  z: null\ngenerated: '2024-01-01T00:00:00Z'\n",
        ),
        (
            "i",
            r#"{"apiVersion": "v1", "more": 1, "entries": {"x": [{"name": "x", "version": "v2", "urls": ["../../x.tgz?a=b#c"]}, null, 1]}}"#,
        ),
        (
            "m",
            r#"{"schemaVersion": 2, "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": "DIGEST", "size": 2}, "layers": [{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": "DIGEST", "size": 0}]}"#,
        ),
        (
            "m",
            r#"{"schemaVersion": 2, "manifests": [{"digest": "DIGEST", "platform": {"os": "linux", "architecture": "amd64"}}]}"#,
        ),
        (
            "c",
            r#"{"os": "linux", "architecture": "amd64", "config": {"Env": ["A=b"]}, "rootfs": {"type": "layers", "diff_ids": []}, "history": []}"#,
        ),
        ("t", r#"{"name": "c", "tags": ["1.0.0", "v1.2", "1.0.0_a", "latest", "99999999999999999999.0.0"]}"#),
        (
            "l",
            r#"{"auths": {"127.0.0.1": {"auth": "dTpw"}, "https://index.docker.io/v1/": {"identitytoken": "t"}}, "credHelpers": {"r.example": "x"}}"#,
        ),
        (
            "w",
            r#"Bearer realm="http://127.0.0.1:1/token", service="a, b", scope="repository:c:pull", Basic realm=x"#,
        ),
        ("k", r#"{"token": "t", "access_token": "a", "expires_in": 300}"#),
        (
            "r",
            "apiVersion: ''\nrepositories:\n- {name: a, url: 'https://charts.example.com/a', username: u, password: p, caFile: '', pass_credentials_all: true}\n",
        ),
    ];
    let (kind, text) = random.one(&texts);
    [kind, &text.replace("DIGEST", DIGEST)].concat().into_bytes()
}
