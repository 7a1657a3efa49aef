//! A chart: metadata, default values, templates, files and subcharts.

/// A loaded chart.
#[derive(Debug, Default)]
pub struct Chart {}
