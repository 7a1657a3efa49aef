//! A release whose record is larger than one object may be: which parts of the chart make it so. Helm keeps
//! the chart with its files, the values and the manifest in one Secret for each revision.

use super::engine::Engine;
use super::history::{History, Stored};
use opdev_client::ApiError;
use opdev_event::words;
use opdev_helm::release::Release;

/// So many parts are named.
const NAMED: usize = 3;
/// A smaller part is not what makes a record too large.
const SMALL: usize = 64 << 10;
/// Two ways to a smaller record.
const CURE: &str = "leave out files that no template reads with .helmignore; with `engine: hybrid` and `storage: chunked` \
                    (docs/hybrid.md) a record may be larger";

impl Engine {
    /// Stores a new revision. A record that is too large is explained beside the API server's own words.
    pub(crate) async fn store(&mut self, history: &mut History, release: Release) -> anyhow::Result<Stored> {
        let parts = parts(&release);
        let stored = history.store(&self.api, &self.owner, release).await;
        if stored.as_ref().is_err_and(is_too_large) {
            self.say(format!("the record of release {} is too large: {parts}", self.name), Some(CURE));
        }
        stored
    }
}

/// Returns true if the API server took an object for too large: a body of several MiB, or a Secret of 1 MiB.
fn is_too_large(error: &anyhow::Error) -> bool {
    let Some(ApiError::Refused { code, message, .. }) = error.downcast_ref() else { return false };
    *code == 413 || (*code == 422 && message.contains(": Too long: "))
}

/// The largest parts of a record, with their sizes before it is compressed.
fn parts(release: &Release) -> String {
    let chart = &release.chart;
    // Base64 has four characters for three bytes.
    let bytes = |text: &str| text.len() / 4 * 3;
    let files = chart.templates.iter().chain(&chart.files);
    let mut found: Vec<(String, usize)> = files.map(|file| (file.name.clone(), bytes(&file.data))).collect();
    found.extend(chart.schema.as_deref().map(|schema| ("values.schema.json".to_owned(), bytes(schema))));
    let hooks: usize = release.hooks.iter().map(|hook| hook.manifest.len()).sum();
    found.push(("the rendered manifest".to_owned(), release.manifest.len()));
    found.push(("the rendered hooks".to_owned(), hooks));
    found.sort_by(|(one, a), (other, b)| b.cmp(a).then_with(|| one.cmp(other)));
    let large = |(at, part): &(usize, &(String, usize))| *at == 0 || part.1 >= SMALL;
    let named = found.iter().enumerate().filter(large).take(NAMED);
    let named: Vec<String> =
        named.map(|(_, (name, size))| format!("{name} {}", words::bytes(*size))).collect();
    format!("its largest parts are {} (before compression)", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_helm::release::{StoredChart, StoredFile};

    #[test]
    fn names_the_large_parts_of_a_record() {
        let file = |name: &str, size: usize| StoredFile { name: name.to_owned(), data: "A".repeat(size) };
        let chart = StoredChart {
            templates: vec![file("templates/a.yaml", 400)],
            files: vec![file("files/dump.txt", 4 << 20), file("README.md", 200 << 10)],
            ..StoredChart::default()
        };
        let release = Release { chart, manifest: "x".repeat(100), ..Release::default() };
        assert_eq!(
            parts(&release),
            "its largest parts are files/dump.txt 3.0 MiB, README.md 150.0 KiB (before compression)"
        );
        let refused = |code, message: &str| {
            let (reason, message) = (String::new(), message.to_owned());
            anyhow::Error::new(ApiError::Refused { code, reason, message, details: None })
                .context("create: failed to create")
        };
        let long = "Secret \"s\" is invalid: data: Too long: may not be more than 1048576 bytes";
        assert!(is_too_large(&refused(422, long)));
        assert!(is_too_large(&refused(413, "Request entity too large: limit is 3145728")));
        assert!(!is_too_large(&refused(422, "Secret \"s\" is invalid: data: Required value")));
    }
}
