//! Files of one volume at the same path, or one inside the other: only one of them is there.

use super::told::Warnings;
use crate::items;
use serde_json::Value;

/// A path, and the source of its file where a volume has several.
#[derive(PartialEq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn shown(&self) -> String {
        if self.source.is_empty() {
            format!("{:?}", self.path)
        } else {
            format!("{:?} ({})", self.path, self.source)
        }
    }

    fn is_inside(&self, other: &File) -> bool {
        let rest = self.path.strip_prefix(other.path.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn files(list: &Value, source: &str) -> Vec<File> {
    let path = |item: &Value| text(&item["path"]).to_owned();
    items(list).iter().map(|item| File { path: path(item), source: source.to_owned() }).collect()
}

/// Warns of a volume whose files are in each other's way.
pub(super) fn overlapping(told: &mut Warnings, volume: &Value) {
    let name = text(&volume["name"]);
    for (field, named) in [("configMap", "name"), ("secret", "secretName"), ("downwardAPI", "")] {
        let source = &volume[field];
        let shown = match field {
            "configMap" => format!("ConfigMap {:?}", text(&source[named])),
            "secret" => format!("Secret {:?}", text(&source[named])),
            _ => "DownwardAPI".to_owned(),
        };
        let mut seen = Vec::new();
        collect(told, (name, &shown), files(&source["items"], ""), &mut seen);
    }
    let mut seen = Vec::new();
    for source in items(&volume["projected"]["sources"]) {
        if source.as_object().is_none_or(serde_json::Map::is_empty) {
            told.warn(format!("volume {name:?} (Projected) has no sources provided"));
            continue;
        }
        collect(told, (name, "Projected"), projected(source), &mut seen);
    }
}

/// The files of one of the sources of a projected volume.
fn projected(source: &Value) -> Vec<File> {
    let one = |path: &Value, source: &str| File { path: text(path).to_owned(), source: source.to_owned() };
    let all = [
        files(&source["configMap"]["items"], &format!("ConfigMap {:?}", text(&source["configMap"]["name"]))),
        files(&source["secret"]["items"], &format!("Secret {:?}", text(&source["secret"]["name"]))),
        files(&source["downwardAPI"]["items"], "DownwardAPI"),
    ];
    let mut found: Vec<File> = all.into_iter().flatten().collect();
    let (token, bundle, pair) =
        (&source["serviceAccountToken"], &source["clusterTrustBundle"], &source["podCertificate"]);
    if !token.is_null() {
        found.push(one(&token["path"], "ServiceAccountToken"));
    }
    if !bundle.is_null() {
        let named = if bundle["name"].is_null() { &bundle["signerName"] } else { &bundle["name"] };
        found.push(one(&bundle["path"], &format!("ClusterTrustBundle {:?}", text(named))));
    }
    for (field, what) in
        [("certificateChainPath", "chain"), ("keyPath", "key"), ("credentialBundlePath", "credential bundle")]
    {
        found.push(one(&pair[field], &format!("PodCertificate {what}")));
    }
    found
}

fn collect(told: &mut Warnings, (name, kind): (&str, &str), files: Vec<File>, seen: &mut Vec<File>) {
    for mut file in files {
        if told.is_full() {
            return;
        }
        file.path.truncate(file.path.trim_end_matches('/').len());
        if file.path.is_empty() {
            continue;
        }
        for other in seen.iter().filter(|other| file.is_inside(other) || other.is_inside(&file)) {
            told.warn(format!(
                "volume {name:?} ({kind}): overlapping paths: {} with {}",
                file.shown(),
                other.shown()
            ));
        }
        seen.push(file);
    }
}
