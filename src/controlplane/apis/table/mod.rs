//! Table answers: the columns of a kind and the cells of its rows. The printers of built-in kinds are here;
//! the `Strategy` of a kind names its own. Custom resources bring their columns. Never selects or sorts
//! objects; the verbs do. `row` has what printers share.

mod age;
pub mod answer;
pub mod cluster;
mod column;
mod custom;
pub mod network;
pub mod pods;
mod row;
mod rows;
pub mod scaling;
pub mod workloads;

use column::Column;
use jiff::Timestamp;
use opdev_apimachinery::resource::Resource;
pub use row::Row;
pub use rows::Tables;
use serde_json::Value;

/// The columns of a built-in kind (a leading `*` shows them only in wide output, `:type` where it is not
/// string) and what makes the cells.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    pub columns: &'static [&'static str],
    pub cells: Cells,
    /// The conditions of a row.
    pub conditions: fn(&Value) -> Option<Value>,
}

/// Makes the cells of one row.
pub(crate) type Cells = fn(Row<'_>) -> Vec<Value>;

impl Printer {
    /// A printer without conditions.
    pub const fn new(columns: &'static [&'static str], cells: Cells) -> Self {
        Printer { columns, cells, conditions: |_| None }
    }
}

/// The columns of a resource with this printer: those of its definition where it is a custom one.
pub fn columns(resource: &Resource, printer: Option<&Printer>) -> Vec<Value> {
    let columns = match (&resource.custom, printer) {
        (Some(custom), _) => custom::columns(&custom.printer_columns),
        (None, Some(printer)) => printer.columns.iter().map(|text| parsed(text)).collect(),
        (None, None) => vec![Column::name(), Column::new("Created At", "date")],
    };
    columns.iter().map(Column::to_value).collect()
}

/// The cells of one object, as many as there are columns.
pub fn cells(resource: &Resource, printer: Option<&Printer>, object: &Value, now: Timestamp) -> Vec<Value> {
    match (&resource.custom, printer) {
        (Some(custom), _) => custom::cells(&custom.printer_columns, object, now),
        (None, Some(printer)) => (printer.cells)(Row { object, now }),
        (None, None) => {
            vec![object["metadata"]["name"].clone(), object["metadata"]["creationTimestamp"].clone()]
        }
    }
}

fn parsed(text: &'static str) -> Column {
    let (text, priority) = text.strip_prefix('*').map_or((text, 0), |text| (text, 1));
    let (name, kind) = text.split_once(':').unwrap_or((text, "string"));
    match name {
        "Name" => Column { priority, ..Column::name() },
        "Age" => Column { priority, ..Column::age() },
        _ => Column { priority, ..Column::new(name, kind) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_texts_parse() {
        let column = parsed("*Count:integer");
        assert_eq!((column.name.as_ref(), column.kind.as_ref(), column.priority), ("Count", "integer", 1));
    }
}
