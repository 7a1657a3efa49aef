//! What leads from a version of an object back to the one before, small enough to keep many. Pure JSON in and out:
//! a value that is the same leaves no trace, an object or a list only what differs inside. `versions` keeps them.

use serde_json::{Map, Value, json};

/// What turns `new` back into `old`; `None` where they are equal.
pub(super) fn back(new: &Value, old: &Value) -> Option<Value> {
    match (new, old) {
        _ if new == old => None,
        (Value::Object(new), Value::Object(old)) => Some(objects(new, old)),
        (Value::Array(new), Value::Array(old)) if new.len() == old.len() && !new.is_empty() => {
            let items = new.iter().zip(old).enumerate();
            let inside = items.filter_map(|(i, (new, old))| Some((i.to_string(), back(new, old)?)));
            Some(json!(["a", Value::Object(inside.collect())]))
        }
        (Value::Array(new), Value::Array(old)) => Some(lists(new, old)),
        _ => Some(json!(["=", old])),
    }
}

fn objects(new: &Map<String, Value>, old: &Map<String, Value>) -> Value {
    let mut inside = Map::new();
    for (name, value) in old {
        match new.get(name) {
            None => _ = inside.insert(name.clone(), json!(["=", value])),
            Some(now) => inside.extend(back(now, value).map(|delta| (name.clone(), delta))),
        }
    }
    let gone: Vec<&String> = new.keys().filter(|name| !old.contains_key(*name)).collect();
    json!(["o", Value::Object(inside), gone])
}

/// Lists of different lengths: how many stay in front and at the end, and what stood between.
fn lists(new: &[Value], old: &[Value]) -> Value {
    let head = new.iter().zip(old).take_while(|(a, b)| a == b).count();
    let rest = new[head..].iter().rev().zip(old[head..].iter().rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    json!(["l", head, tail, old[head..old.len() - tail]])
}

/// Turns a value into the older one. What is not of the form that `back` makes leaves it as it is.
pub(super) fn apply(value: &mut Value, delta: &Value) {
    match (delta[0].as_str(), value) {
        (Some("="), value) => *value = delta[1].clone(),
        (Some("o"), Value::Object(fields)) => {
            for gone in delta[2].as_array().into_iter().flatten().filter_map(Value::as_str) {
                fields.remove(gone);
            }
            for (name, inside) in delta[1].as_object().into_iter().flatten() {
                apply(fields.entry(name.clone()).or_insert(Value::Null), inside);
            }
        }
        (Some("a"), Value::Array(items)) => {
            for (index, inside) in delta[1].as_object().into_iter().flatten() {
                let item = index.parse::<usize>().ok().and_then(|index| items.get_mut(index));
                item.into_iter().for_each(|item| apply(item, inside));
            }
        }
        (Some("l"), Value::Array(items)) => {
            let count = |at: usize| {
                delta[at].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0).min(items.len())
            };
            let (head, tail) = (count(1), count(2));
            let end = items.len().saturating_sub(tail).max(head);
            let middle = delta[3].as_array().cloned().unwrap_or_default();
            items.splice(head..end, middle);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(new: &Value, old: &Value) -> usize {
        let mut value = new.clone();
        let delta = back(new, old);
        if let Some(delta) = &delta {
            apply(&mut value, delta);
        }
        assert_eq!(value, *old, "by {delta:?}");
        delta.map_or(0, |delta| delta.to_string().len())
    }

    #[test]
    fn every_kind_of_difference_leads_back() {
        let old = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "list": [1, 2, 3, 4], "gone": null,
            "same": {"deep": [{"x": 1}]}, "kind": "was text", "items": [{"a": 1}, {"b": 2}]});
        let new = json!({"metadata": {"name": "a", "resourceVersion": "2"}, "list": [1, 9, 4], "fresh": {"x": 1},
            "same": {"deep": [{"x": 1}]}, "kind": {"now": "an object"}, "items": [{"a": 1}, {"b": 3, "c": 4}]});
        there_and_back(&new, &old);
        there_and_back(&old, &new);
        there_and_back(&old, &old);
        there_and_back(&json!([]), &json!([1]));
        there_and_back(&json!([1]), &json!([]));
        there_and_back(&json!(["o", {}, []]), &json!(["=", 1]));
    }

    #[test]
    fn a_small_change_of_a_large_object_is_small() {
        let containers: Vec<Value> =
            (0..50).map(|i| json!({"name": format!("c{i}"), "image": "x"})).collect();
        let old = json!({"spec": {"replicas": 1, "containers": containers}});
        let mut new = old.clone();
        new["spec"]["replicas"] = json!(2);
        assert!(there_and_back(&new, &old) < 60);
        new["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "one more"}));
        assert!(there_and_back(&new, &old) < 120);
    }

    #[test]
    fn any_two_values_lead_to_each_other() {
        fn value(dice: &mut u64, depth: usize) -> Value {
            *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let roll = *dice >> 33;
            match roll % if depth == 0 { 4 } else { 6 } {
                0 => Value::Null,
                1 => json!(roll % 3),
                2 => json!(["=", "o", "a", "l"][(roll / 7 % 4) as usize]),
                3 => json!(roll.is_multiple_of(2)),
                4 => (0..roll / 11 % 4).map(|_| value(dice, depth - 1)).collect(),
                _ => Value::Object(
                    (0..roll / 13 % 4).map(|i| (format!("k{i}"), value(dice, depth - 1))).collect(),
                ),
            }
        }
        let mut dice = 7;
        for _ in 0..3_000 {
            let (a, b) = (value(&mut dice, 4), value(&mut dice, 4));
            there_and_back(&a, &b);
        }
    }
}
