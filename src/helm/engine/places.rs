//! Where a template stands in the folder of its chart.

/// A template's path as a file below the chart's folder.
pub(super) fn file_of(path: &str) -> String {
    path.split_once('/').map_or(path, |(_, rest)| rest).to_owned()
}
