//! Fields that seem to have been renamed or moved: one that is gone and one that has come, alike in schema,
//! name or description. The data is lost either way; the words are clearer.

use super::finding::{Change, Finding};
use super::paths::{child, items, last, parent, values};
use super::words::shape;
use serde_json::Value;

/// From this score on, two fields are taken for one.
const ALIKE: u32 = 5;

/// Turns removals that have a counterpart into renames and moves.
pub(super) fn detect(findings: &mut [Finding], old: &Value, new: &Value) {
    let of = |findings: &[Finding], kind: Change| -> Vec<String> {
        findings.iter().filter(|f| f.kind == kind).map(|f| f.path.clone()).collect()
    };
    let removed: Vec<String> =
        of(findings, Change::PropertyRemoved).into_iter().filter(|path| last(path) != "*").collect();
    let added = of(findings, Change::PropertyAdded);
    if removed.is_empty() || added.is_empty() {
        return;
    }
    let (removed, added) = (with_schemas(&removed, old), with_schemas(&added, new));
    let mut pairs: Vec<(u32, &str, &str)> = Vec::new();
    for (from, before) in &removed {
        let beside: Vec<_> = added.iter().filter(|(to, _)| parent(to) == parent(from)).collect();
        let alone = beside.len() == 1
            && removed.iter().filter(|(other, _)| parent(other) == parent(from)).count() == 1;
        for (to, after) in beside {
            let score = score((last(from), before), (last(to), after), alone);
            if score >= ALIKE {
                pairs.push((score, from, to));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)).then(a.2.cmp(b.2)));
    let mut taken: Vec<&str> = Vec::new();
    for (_, from, to) in pairs {
        if taken.contains(&from) || taken.contains(&to) {
            continue;
        }
        taken.extend([from, to]);
        let what = format!(
            "renamed {} → {}: stored values of {0} are lost, they are pruned at the next write",
            last(from),
            last(to)
        );
        mark(findings, from, to, Change::PropertyRenamed, what);
    }
    let mut inner = Vec::new();
    for (path, schema) in added.iter().filter(|(path, _)| !taken.contains(&path.as_str())) {
        inside(path, schema, 0, &mut inner);
    }
    for (from, before) in removed.iter().filter(|(path, _)| !taken.contains(&path.as_str())) {
        let target = inner.iter().find(|(to, after)| last(to) == last(from) && shape(before) == shape(after));
        if let Some((to, _)) = target {
            let what =
                format!("moved to {to}: stored values of {from} are lost, they are pruned at the next write");
            mark(findings, from, to, Change::PropertyMoved, what);
        }
    }
}

fn mark(findings: &mut [Finding], from: &str, to: &str, kind: Change, what: String) {
    if let Some(finding) = findings.iter_mut().find(|f| f.kind == Change::PropertyRemoved && f.path == from) {
        finding.kind = kind;
        finding.what = what;
        finding.renamed_to = Some(to.to_owned());
    }
}

fn with_schemas<'a>(paths: &[String], root: &'a Value) -> Vec<(String, &'a Value)> {
    paths.iter().filter_map(|path| Some((path.clone(), find(root, path)?))).collect()
}

fn find<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = root;
    for part in path.split('.') {
        let (name, lists) = part.split_at(part.find("[*]").unwrap_or(part.len()));
        at = if name == "*" { at.get("additionalProperties")? } else { at.get("properties")?.get(name)? };
        for _ in 0..lists.len() / 3 {
            at = at.get("items")?;
        }
    }
    Some(at)
}

/// Every field of a new field, and itself.
fn inside<'a>(path: &str, schema: &'a Value, depth: usize, found: &mut Vec<(String, &'a Value)>) {
    const DEEPEST: usize = 16;
    const MOST: usize = 2000;
    if depth > DEEPEST || found.len() > MOST {
        return;
    }
    found.push((path.to_owned(), schema));
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        inside(&child(path, name), property, depth + 1, found);
    }
    if let Some(part) = schema.get("items") {
        inside(&items(path), part, depth + 1, found);
    }
    if let Some(part) = schema.get("additionalProperties").filter(|part| part.is_object()) {
        inside(&values(path), part, depth + 1, found);
    }
}

/// The likeness of two fields of one object.
fn score((from, before): (&str, &Value), (to, after): (&str, &Value), alone: bool) -> u32 {
    if shape(before) != shape(after) {
        return 0;
    }
    let plain = |schema: &Value| {
        let mut schema = schema.clone();
        if let Some(map) = schema.as_object_mut() {
            map.retain(|key, _| !matches!(key.as_str(), "description" | "title" | "example" | "default"));
        }
        schema
    };
    let mut score = 1;
    if plain(before) == plain(after) {
        score += 2;
    }
    score += match resemblance(&from.to_lowercase(), &to.to_lowercase()) {
        80.. => 4,
        50.. => 3,
        35.. => 1,
        _ => 0,
    };
    let said = |schema: &Value, name: &str| {
        let text = schema["description"].as_str().unwrap_or_default().to_lowercase();
        text.replace(&name.to_lowercase(), "")
    };
    let (a, b) = (said(before, from), said(after, to));
    if !a.trim().is_empty() && resemblance(&a, &b) >= 80 {
        score += 3;
    }
    if alone {
        score += 2;
    }
    score
}

/// The likeness of two texts, in percent: their common characters in order, and if one contains the other.
fn resemblance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 400;
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(LONGEST).collect(), b.chars().take(LONGEST).collect());
    let longest = a.len().max(b.len());
    if longest == 0 {
        return 100;
    }
    let mut row: Vec<usize> = vec![0; b.len() + 1];
    for x in &a {
        let mut corner = 0;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if x == y { corner + 1 } else { above.max(row[j]) };
            corner = above;
        }
    }
    row[b.len()] * 100 / longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_share_letters_are_alike() {
        assert!(resemblance("replicas", "replicacount") >= 50);
        assert!(resemblance("size", "replicas") < 50);
        assert_eq!(resemblance("", ""), 100);
    }
}
