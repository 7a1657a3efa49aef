//! Errors of values against values.schema.json, and of a schema that cannot be used.

use std::fmt::{self, Write};

/// Errors of the schemas of a chart and its subcharts against values, in the order of the charts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaErrors {
    /// One error for each chart that refuses its values.
    pub charts: Vec<ChartSchemaError>,
}

/// Errors of the schema of one chart against its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartSchemaError {
    /// The name of the chart, as its parent calls it.
    pub chart: String,
    /// The error.
    pub error: SchemaError,
}

/// Why values do not pass a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// values.schema.json is not JSON.
    NotJson {
        /// The line in the file, from 1.
        line: usize,
        /// The column in the line, from 1.
        column: usize,
        /// The error, with the place.
        message: String,
    },
    /// The schema is not a JSON schema, or refers to a schema that cannot be read.
    NotASchema {
        /// The message of the library.
        message: String,
    },
    /// The values do not pass.
    Values(Vec<Violation>),
}

/// One rule of a schema that a value breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The JSON pointer of the value.
    pub path: String,
    /// Its error.
    pub message: String,
    /// Why, where the rule is made of other rules.
    pub causes: Vec<Violation>,
}

impl Violation {
    /// A line for each rule, those that it is made of below it.
    fn write(&self, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        let _ = writeln!(text, "{indent}- at '{}': {}", self.path, self.message);
        for cause in &self.causes {
            cause.write(depth + 1, text);
        }
    }
}

impl fmt::Display for SchemaErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.charts.iter().try_for_each(|one| writeln!(f, "{}:\n{}", one.chart, one.error))
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchemaError::NotJson { message, .. } => write!(f, "values.schema.json: {message}"),
            SchemaError::NotASchema { message } => f.write_str(message),
            SchemaError::Values(violations) => {
                let mut text = String::new();
                violations.iter().for_each(|violation| violation.write(0, &mut text));
                f.write_str(text.trim_end_matches('\n'))
            }
        }
    }
}

impl std::error::Error for SchemaErrors {}

impl std::error::Error for SchemaError {}
