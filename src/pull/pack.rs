//! A chart's folder as an archive, as `helm package` lays it out. The times in it are zero, so that the same
//! chart always gives the same bytes.

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use opdev_helm::chart::Chart;
use opdev_object::yaml;

/// The archive of a chart.
///
/// # Errors
/// What cannot be written into an archive, such as a file that can no longer be read.
pub(super) fn pack(chart: &Chart) -> Result<Vec<u8>> {
    let gzip = GzBuilder::new().comment("Helm").write(Vec::new(), Compression::default());
    let mut tar = tar::Builder::new(gzip);
    add_chart(&mut tar, chart, "")?;
    Ok(tar.into_inner()?.finish()?)
}

type Archive = tar::Builder<flate2::write::GzEncoder<Vec<u8>>>;

fn add_chart(tar: &mut Archive, chart: &Chart, prefix: &str) -> Result<()> {
    let folder = format!("{prefix}{}", chart.name());
    let mut metadata = chart.metadata.clone();
    if metadata.api_version == "v1" {
        // They stand in requirements.yaml, which is among the files.
        metadata.dependencies.clear();
    }
    let text = yaml::to_string(&serde_json::to_value(&metadata)?);
    add(tar, &format!("{folder}/Chart.yaml"), text.as_bytes())?;
    if let Some(lock) = chart.lock.as_ref().filter(|_| chart.metadata.api_version == "v2") {
        add(tar, &format!("{folder}/Chart.lock"), yaml::to_string(lock).as_bytes())?;
    }
    if let Some(values) = &chart.values_text {
        add(tar, &format!("{folder}/values.yaml"), values)?;
    }
    if let Some(schema) = &chart.schema {
        add(tar, &format!("{folder}/values.schema.json"), schema)?;
    }
    for file in chart.templates.iter().chain(&chart.files) {
        add(tar, &format!("{folder}/{}", file.name), &file.data)?;
    }
    for subchart in &chart.subcharts {
        add_chart(tar, subchart, &format!("{folder}/charts/"))?;
    }
    Ok(())
}

fn add(tar: &mut Archive, path: &str, bytes: &[u8]) -> Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    tar.append_data(&mut header, path, bytes).with_context(|| format!("{path} cannot be packed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_helm::chart::FileSet;

    #[test]
    fn what_is_packed_is_the_chart_again() {
        let long = format!("templates/{}a.yaml", "folder/".repeat(30));
        let files: FileSet = [
            ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0+b\nappVersion: \"1\"\n"),
            ("values.yaml", "# kept\nn: 1\n"),
            ("values.schema.json", "{}"),
            (long.as_str(), "a: 1\n"),
            ("README.md", "text"),
            ("charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 2.0.0\n"),
        ]
        .into_iter()
        .map(|(path, text)| (path, text.as_bytes()))
        .collect();
        let chart = Chart::load(&files).unwrap();
        let archive = pack(&chart).unwrap();
        assert_eq!(archive, pack(&chart).unwrap());
        let again = Chart::load_archive(&archive).unwrap();
        assert_eq!((&again.metadata, &again.values_text), (&chart.metadata, &chart.values_text));
        assert_eq!((&again.templates, &again.files), (&chart.templates, &chart.files));
        assert_eq!(again.subcharts[0].metadata, chart.subcharts[0].metadata);
    }
}
