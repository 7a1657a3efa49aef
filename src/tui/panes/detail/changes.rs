//! Differences as `-` and `+` lines by path. Text of several lines is compared line by line.

use super::super::text::{Row, clean};
use super::super::theme::Role;
use opdev_object::diff::Change;
use opdev_object::path::{Path, Segment};
use opdev_object::yaml;
use serde_json::Value;

/// More lines of one text are not shown.
const MOST: usize = 200;

/// The rows of all changes, grouped by what they are in.
pub(super) fn rows(changes: &[Change], indent: usize) -> Vec<Row> {
    let mut out = Vec::new();
    let mut group: Option<Path> = None;
    for change in changes {
        let (parent, field) = split(&change.path);
        if group.as_ref() != Some(&parent) {
            if !parent.0.is_empty() {
                out.push(Row::new(Role::Dim, format!("{:indent$}  {parent}", "")));
            }
            group = Some(parent);
        }
        one(change, field.as_deref(), indent, &mut out);
    }
    out
}

/// The part that a change is in, and its field there; an item of a list stands for itself.
fn split(path: &Path) -> (Path, Option<String>) {
    match path.0.split_last() {
        Some((Segment::Field(name), rest)) => (Path(rest.to_vec()), Some(name.clone())),
        _ => (path.clone(), None),
    }
}

fn one(change: &Change, field: Option<&str>, indent: usize, out: &mut Vec<Row>) {
    if let (Some(Value::String(old)), Some(Value::String(new))) = (&change.old, &change.new)
        && (old.contains('\n') || new.contains('\n'))
    {
        return texts(old, new, field.unwrap_or_default(), indent, out);
    }
    if let Some(items) = change.reordered() {
        return order(change, items, field.unwrap_or_default(), indent, out);
    }
    let signs = [("-", Role::Removed, &change.old), ("+", Role::Added, &change.new)];
    for (sign, role, value) in signs {
        let Some(value) = value else { continue };
        for line in lines(field, value) {
            out.push(Row::new(role, format!("{sign}{:indent$}   {}", "", clean(&line))));
        }
    }
    if change.old.is_some() && change.old == change.new {
        out.push(Row::new(Role::Dim, format!("{:indent$}    (masked)", "")));
    }
}

/// A list whose items changed places: each with where it was and where it is.
fn order(change: &Change, items: usize, field: &str, indent: usize, out: &mut Vec<Row>) {
    out.push(
        Row::new(Role::Changed, format!("~{:indent$}   {field}", ""))
            .and(Role::Dim, format!("   the same {items} items in another order")),
    );
    let (Some(Value::Array(old)), Some(Value::Array(new))) = (&change.old, &change.new) else { return };
    for (now, item) in new.iter().enumerate().take(MOST) {
        let Some(before) = old.iter().position(|one| one == item) else { continue };
        let named = ["name", "type", "key"].iter().find_map(|key| item[*key].as_str());
        let name = named.map_or_else(|| item.to_string(), str::to_owned);
        let role = if before == now { Role::Dim } else { Role::Text };
        let (before, now) = (before + 1, now + 1);
        out.push(Row::new(role, format!(" {:indent$}     {before}→{now}  {}", "", clean(&name))));
    }
}

/// A value as YAML, below its field's name.
fn lines(field: Option<&str>, value: &Value) -> Vec<String> {
    let text = match field {
        Some(field) => yaml::to_string(&serde_json::json!({ field: value })),
        None => yaml::to_string(value),
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("… {more} more lines"));
    }
    lines
}

fn texts(old: &str, new: &str, field: &str, indent: usize, out: &mut Vec<Row>) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let edits = edits(&old, &new);
    let count = edits.iter().filter(|(sign, _)| *sign != ' ').count();
    let s = if count == 1 { "" } else { "s" };
    out.push(
        Row::new(Role::Changed, format!("~{:indent$}   {field}", ""))
            .and(Role::Dim, format!("   {count} line{s} changed")),
    );
    let shown = context(&edits);
    for (sign, line) in shown.iter().take(MOST) {
        let role = match sign {
            '-' => Role::Removed,
            '+' => Role::Added,
            _ => Role::Dim,
        };
        out.push(Row::new(role, format!("{sign}{:indent$}     {}", "", clean(line))));
    }
    if shown.len() > MOST {
        out.push(Row::new(Role::Dim, format!("{:indent$}      … {} more lines", "", shown.len() - MOST)));
    }
}

/// Changed lines with one line around them.
fn context<'a>(edits: &[(char, &'a str)]) -> Vec<(char, &'a str)> {
    let near = |i: usize| {
        let from = i.saturating_sub(1);
        edits[from..edits.len().min(i + 2)].iter().any(|(sign, _)| *sign != ' ')
    };
    let mut out = Vec::new();
    let mut gap = false;
    for (i, edit) in edits.iter().enumerate() {
        if near(i) {
            if gap && !out.is_empty() {
                out.push((' ', "…"));
            }
            gap = false;
            out.push(*edit);
        } else {
            gap = true;
        }
    }
    out
}

/// The shortest way from one list of lines to another; beyond a million comparisons, the plain one.
fn edits<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut out: Vec<(char, &str)> = old[..head].iter().map(|line| (' ', *line)).collect();
    if a.len() * b.len() > 1_000_000 {
        out.extend(a.iter().map(|line| ('-', *line)));
        out.extend(b.iter().map(|line| ('+', *line)));
    } else {
        // The length of the longest common part of the rests, from the end to the front.
        let columns = b.len() + 1;
        let mut common = vec![0_u32; (a.len() + 1) * columns];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                common[i * columns + j] = if a[i] == b[j] {
                    common[(i + 1) * columns + j + 1] + 1
                } else {
                    common[(i + 1) * columns + j].max(common[i * columns + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            if i < a.len() && j < b.len() && a[i] == b[j] {
                out.push((' ', a[i]));
                (i, j) = (i + 1, j + 1);
            } else if i < a.len()
                && (j == b.len() || common[(i + 1) * columns + j] >= common[i * columns + j + 1])
            {
                out.push(('-', a[i]));
                i += 1;
            } else {
                out.push(('+', b[j]));
                j += 1;
            }
        }
    }
    out.extend(old[old.len() - tail..].iter().map(|line| (' ', *line)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_object::diff::diff;
    use serde_json::json;

    fn text(old: &Value, new: &Value) -> String {
        rows(&diff(old, new), 0).iter().map(Row::text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn fields_are_grouped_below_what_they_are_in() {
        let old = json!({"status": {"conditions": [{"type": "Deployed", "status": "False"}], "size": 1}});
        let new = json!({"status": {"conditions": [{"type": "Deployed", "status": "True", "reason": "Ok"}], "size": 2}});
        assert_eq!(
            text(&old, &new),
            "  .status.conditions[type=Deployed]\n-   status: \"False\"\n+   status: \"True\"\n+   reason: Ok\n  .status\n-   size: 1\n+   size: 2"
        );
    }

    #[test]
    fn long_text_shows_the_lines_that_differ() {
        let old = json!({"m": "a\nb\nc\nd\ne\nf\ng\n"});
        let new = json!({"m": "a\nB\nc\nd\ne\nf\ng\nh\n"});
        assert_eq!(
            text(&old, &new),
            "~   m   3 lines changed\n      a\n-     b\n+     B\n      c\n      …\n      g\n+     h"
        );
    }

    #[test]
    fn edits_lead_from_the_old_to_the_new() {
        let (old, new) = (["x", "a", "b", "c", "y"], ["x", "b", "d", "c", "y"]);
        let edits = edits(&old, &new);
        let of = |sign: char| {
            edits.iter().filter(|(s, _)| *s == ' ' || *s == sign).map(|(_, l)| *l).collect::<Vec<_>>()
        };
        assert_eq!(of('-'), old);
        assert_eq!(of('+'), new);
        assert_eq!(edits.iter().filter(|(s, _)| *s != ' ').count(), 2);
    }
}
