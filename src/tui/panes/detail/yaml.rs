//! The selected object as YAML: `managedFields` folded into one line unless asked for, and on demand who owns
//! each line.

use super::super::text::{Row, clean, cut, left, width};
use super::super::theme::Role;
use super::page::{DetailTab, Page, Stamp};
use crate::detail::parts::clock;
use crate::keys::action::Do;
use crate::keys::action::{Action, Section, action};
use crate::pane::{Pane, Tab};
use opdev_object::yaml;
use opdev_state::managers;
use opdev_state::managers::{Owners, Step};
use opdev_state::{Seen, State};
use serde_json::Value;

impl Tab {
    pub const YAML: Tab = Tab("yaml");
}

/// The tab.
pub(super) struct Yaml;

impl DetailTab for Yaml {
    fn tab(&self) -> Tab {
        Tab::YAML
    }

    fn title(&self) -> &'static str {
        "YAML"
    }

    fn action(&self) -> Action {
        action(Tab::YAML.0, Do::Show(Tab::YAML), &["y"], Section::Look)
            .about("yaml", "Show the selected object as YAML.")
            .footer(&[Pane::Resources, Pane::Owned])
    }

    fn place(&self) -> u8 {
        1
    }

    fn about(&self, page: &Page<'_>) -> Option<String> {
        page.subject_name()
    }

    fn stamp(&self, page: &Page<'_>) -> Stamp {
        Stamp::of_subject(page, 0)
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let (state, cells) = (page.state, page.cells);
        let Some(seen) = page.subject else {
            let text = " Nothing is selected. A custom resource or an owned object shows here.";
            return vec![Row::new(Role::Dim, text)];
        };
        let mut rows = gone(page, state, seen);
        let how = &page.how;
        if how.owners {
            rows.extend(owned(page, &seen.object, cells));
        } else {
            rows.extend(plain(&seen.object, how.managed));
        }
        rows
    }

    fn is_of_object(&self) -> bool {
        true
    }

    fn shows_whole_object(&self) -> bool {
        true
    }

    fn file_ending(&self) -> &'static str {
        "yaml"
    }
}

/// Says so where the object is there no more, or not all of it is known.
pub(super) fn gone(page: &Page<'_>, state: &State, seen: &Seen) -> Vec<Row> {
    let only = seen.metadata_only;
    let Some(at) = state.gone_at(&seen.key) else {
        let reading = Row::new(Role::Dim, " Only its metadata was read so far; the rest is asked for.");
        return if only { vec![reading] } else { Vec::new() };
    };
    let how = if only {
        "this was its metadata last; nobody had looked at the rest"
    } else {
        "this is how it was last"
    };
    vec![Row::new(Role::Busy, format!(" † deleted {}; {how}", clock(at, page.zone)))]
}

/// An object as YAML, with or without `managedFields`.
pub(super) fn plain(object: &Value, managed: bool) -> Vec<Row> {
    let (object, folded) = fold(object, managed);
    let mut rows: Vec<Row> = yaml::to_string(&object).lines().map(line).collect();
    if let Some(names) = folded {
        rows.insert(0, Row::new(Role::Dim, format!("# fields managed by {names}")));
    }
    rows
}

/// Without `managedFields`, whose managers are named instead.
fn fold(object: &Value, managed: bool) -> (Value, Option<String>) {
    let mut object = object.clone();
    if managed {
        return (object, None);
    }
    let mut names: Vec<String> = managers::all(&object).into_iter().map(|manager| manager.name).collect();
    names.dedup();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    (object, (!names.is_empty()).then(|| names.join(", ")))
}

/// A line of YAML: the key stands out.
fn line(line: &str) -> Row {
    let line = clean(line);
    let start = line.len() - line.trim_start_matches([' ', '-']).len();
    match line[start..].find(':').map(|at| start + at) {
        Some(at) if line[at + 1..].is_empty() || line[at + 1..].starts_with(' ') => {
            Row::new(Role::Key, &line[..at]).and(Role::Text, &line[at..])
        }
        _ => Row::new(Role::Text, line),
    }
}

/// Each line with who owns it in front.
fn owned(page: &Page<'_>, object: &Value, cells: usize) -> Vec<Row> {
    let owners = Owners::of(object);
    let all = managers::all(object);
    if all.is_empty() {
        let text = "# the object has no managedFields, so nobody is known to own a field of it";
        return std::iter::once(Row::new(Role::Dim, text)).chain(plain(object, false)).collect();
    }
    let mut rows: Vec<Row> = all
        .iter()
        .map(|manager| {
            let at = manager.at.map_or_else(String::new, |at| format!(" {}", clock(at, page.zone)));
            Row::new(Role::Dim, "# ")
                .and(Role::Key, manager.label())
                .and(Role::Dim, format!(" {}{at}", manager.operation))
        })
        .collect();
    let (object, _) = fold(object, false);
    let mut lines = Vec::new();
    emit(&object, &mut Vec::new(), "", "", &mut lines);
    let named: Vec<String> = lines.iter().map(|(_, place)| owners.at(place).join(", ")).collect();
    let most = (cells / 4).clamp(8, 28);
    let column = named.iter().map(|name| width(name)).max().unwrap_or(0).min(most);
    let mut last = String::new();
    for ((text, _), name) in lines.into_iter().zip(named) {
        // Repeated names would drown the one that differs.
        let (sign, shown) = match name.as_str() {
            "" => ("·", String::new()),
            same if same == last => ("│", String::new()),
            name => ("│", name.to_owned()),
        };
        let role = if name.contains(", ") { Role::Changed } else { Role::Good };
        let shared = name.contains(", ");
        let mut row = Row::new(role, left(&cut(&shown, column), column))
            .and(if shared { Role::Changed } else { Role::Dim }, format!(" {sign} "));
        row.0.extend(line(&text).0);
        rows.push(row);
        last = name;
    }
    rows.push(Row::new(
        Role::Dim,
        format!("# {}: nobody owns the line; several owners are told apart by commas", "·"),
    ));
    rows
}

/// The lines of a value, each with the place it shows. `first` stands before the first line, `rest` before
/// the others.
fn emit(value: &Value, at: &mut Vec<Step>, first: &str, rest: &str, out: &mut Vec<(String, Vec<Step>)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let mut names: Vec<&String> = fields.keys().collect();
            yaml::sort_keys(&mut names, false, |name| name.as_str());
            for (i, name) in names.into_iter().enumerate() {
                let before = if i == 0 { first } else { rest };
                at.push(Step::Field(name.clone()));
                field(name, &fields[name], at, (before, rest), out);
                at.pop();
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                let before = if i == 0 { first } else { rest };
                at.push(Step::Item(i));
                emit(item, at, &format!("{before}- "), &format!("{rest}  "), out);
                at.pop();
            }
        }
        scalar => {
            for (i, text) in yaml::to_string(scalar).lines().enumerate() {
                out.push((format!("{}{text}", if i == 0 { first } else { rest }), at.clone()));
            }
        }
    }
}

fn field(
    name: &str,
    value: &Value,
    at: &mut Vec<Step>,
    (before, rest): (&str, &str),
    out: &mut Vec<(String, Vec<Step>)>,
) {
    let inner = match value {
        Value::Object(fields) if !fields.is_empty() => format!("{rest}  "),
        // Lists are not indented below their field.
        Value::Array(items) if !items.is_empty() => rest.to_owned(),
        _ => {
            for (i, text) in yaml::to_string(&serde_json::json!({ name: value })).lines().enumerate() {
                out.push((format!("{}{text}", if i == 0 { before } else { rest }), at.clone()));
            }
            return;
        }
    };
    let key = yaml::to_string(&serde_json::json!({ name: null }));
    let key = key.trim_end().strip_suffix("null").unwrap_or(&key).trim_end();
    out.push((format!("{before}{key}"), at.clone()));
    emit(value, at, &inner, &inner, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_with_owners_are_those_of_the_yaml() {
        let object = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "annotations": {"a/b": "", "on": "x"}},
            "spec": {"args": ["--a", "b: c"], "empty": {}, "none": [], "list": [{"name": "n", "deep": {"x": [1, [2, 3]]}}, {"name": "m"}],
                "text": "one\ntwo\n", "number": 1.5, "yes": true, "null": null}});
        let mut lines = Vec::new();
        emit(&object, &mut Vec::new(), "", "", &mut lines);
        let text: Vec<&str> = lines.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(text.join("\n"), yaml::to_string(&object).trim_end());
        let place = |text: &str| lines.iter().find(|(line, _)| line.trim() == text).unwrap().1.clone();
        let field = |name: &str| Step::Field(name.to_owned());
        assert_eq!(place("- deep:"), [field("spec"), field("list"), Step::Item(0), field("deep")]);
        assert_eq!(place("- --a"), [field("spec"), field("args"), Step::Item(0)]);
    }
}
