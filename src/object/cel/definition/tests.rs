//! Definitions and what a real API server says of them.

use super::*;

/// One case a line, with what a real server says.
const REFUSED: &str = include_str!("../../../../tests/golden/definition/refused.jsonl");
const DIFFERENCES: &str = include_str!("../../../../tests/golden/definition/differences.txt");

/// Definitions are refused here as by a real server, but for those in `differences.txt`.
#[test]
fn definitions_are_refused_as_by_a_real_server() {
    let known: Vec<&str> =
        DIFFERENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in REFUSED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        let mut crd = case["crd"].clone();
        complete(&mut crd);
        let mut got: Vec<String> = validate(&crd).iter().map(ToString::to_string).collect();
        got.sort();
        let wanted: Vec<String> = case["refused"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect();
        count += 1;
        if (got == wanted) == known.contains(&name) {
            wrong.push(format!("{name}\n   wanted {wanted:?}\n   got    {got:?}"));
        }
    }
    assert!(count > 90, "{count}");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// A definition whose versions have these schemas of `spec`.
fn versions(schemas: &[(&str, Value)]) -> Value {
    let versions: Vec<Value> = schemas
        .iter()
        .map(|(name, spec)| {
            json!({"name": name, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
        })
        .collect();
    json!({"spec": {"versions": versions}})
}

#[test]
fn rules_that_may_cost_too_much_are_refused() {
    let faults = |crd: &Value, current: Option<&Value>| -> Vec<String> {
        expensive(crd, current).iter().map(|fault| fault.error.to_string()).collect()
    };
    let list = |items: Value, limit: Option<u64>, rules: Value| {
        let mut list = json!({"type": "array", "items": items});
        if let Some(limit) = limit {
            list["maxItems"] = json!(limit);
        }
        json!({"type": "object", "properties": {"l": list}, "x-kubernetes-validations": rules})
    };
    let short = json!({"type": "string", "maxLength": 10});
    let pairs = json!([{"rule": "self.l.all(x, self.l.exists(y, y == x))"}]);
    let one = |spec: &Value| versions(&[("v1", spec.clone())]);
    let place =
        "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: ";
    let advice = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
                  strings are declared)";
    for (limit, factor) in
        [(999, None), (1000, Some("1.000600x")), (1200, Some("1.440720x")), (2000, Some("4.0x"))]
    {
        let wanted = factor.map(|factor| {
            format!("{place}estimated rule cost exceeds budget by factor of {factor} {advice}")
        });
        let found = faults(&one(&list(short.clone(), Some(limit), pairs.clone())), None);
        assert_eq!(found, wanted.into_iter().collect::<Vec<_>>(), "{limit}");
    }
    // Without limits all rules together are too much as well, and those that weigh most are named.
    let open = list(json!({"type": "string"}), None, pairs);
    let found = faults(&one(&open), None);
    let schema = "spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire \
                  OpenAPIv3 schema exceeds budget by factor of more than 100x";
    let part = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
    assert_eq!(found[1], format!("{place}{part}"));
    assert_eq!(found[2], format!("{schema} {advice}"));
    // A version whose schema stays is looked at with all others only.
    let two = versions(&[("v1", json!({"type": "object"})), ("v2", open)]);
    assert!(faults(&two, None)[0].starts_with("spec.versions[1].schema.openAPIV3Schema.properties[spec]."));
    assert!(faults(&two, Some(&two))[0].ends_with(part));
    // A part that may occur often costs as often; a message is counted once.
    let matched = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^a+$')"}]});
    let found = faults(&one(&json!({"type": "array", "items": matched.clone()})), None);
    assert!(found[0].starts_with("spec.validation.openAPIV3Schema.properties[spec].items."), "{found:?}");
    assert!(faults(&one(&matched), None).is_empty());
}

/// Since 1.37 the API server knows how long a name may be.
#[test]
fn rules_about_the_name_cost_as_much_as_a_name_may_be_long() {
    let list = json!({"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 10}});
    let refused = |compared: &str, metadata: Value| {
        let mut crd = versions(&[(
            "v1",
            json!({"type": "object", "properties": {"l": list, "long": {"type": "string"}}}),
        )]);
        let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["metadata"] = metadata;
        schema["x-kubernetes-validations"] =
            json!([{"rule": format!("self.spec.l.all(x, x.startsWith({compared}))")}]);
        !expensive(&crd, None).is_empty()
    };
    assert!(refused("self.spec.long", json!({"type": "object"})));
    assert!(!refused("self.metadata.name", json!({"type": "object"})));
    let longer =
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3_000_000}}});
    assert!(!refused("self.metadata.name", longer));
}

/// controller-gen puts two defaults of one field into `allOf`; a real server takes no default there.
#[test]
fn defaults_of_controller_gen_that_a_server_refuses_are_refused() {
    let text =
        include_str!("../../../../tests/golden/types/go/expected/v0.21.0/twice.example.com_twices.yaml");
    let mut crd = opdev_object::yaml::from_str(text).unwrap();
    complete(&mut crd);
    let refused: Vec<String> = validate(&crd).iter().map(ToString::to_string).collect();
    let own = "spec.validation.openAPIV3Schema.properties[spec].properties[own].allOf";
    for branch in 0..2 {
        let wanted = format!("{own}[{branch}].default: Forbidden: must be undefined to be structural");
        assert!(refused.contains(&wanted), "{refused:#?}");
    }
}
