//! Rules and what they say, as a real API server says it.

use super::*;
use crate::random::Random;
use crate::structural::{structural, structural_at};
use opdev_object::schema::ValueRules as _;
use serde_json::{Value, json};

#[track_caller]
fn verdict(schema: &Value, value: &Value, old: Option<&Value>) -> Vec<String> {
    let schema_ref = structural(schema).unwrap();
    let rules = Rules::compile("", schema).unwrap().unwrap();
    rules.validate(value, old, &schema_ref).iter().map(ToString::to_string).collect()
}

fn with_rule(properties: Value, rule: &str) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties,
        "x-kubernetes-validations": [{"rule": rule}]}}})
}

#[test]
fn a_rule_holds_or_does_not() {
    let schema = with_rule(json!({"a": {"type": "integer"}, "b": {"type": "integer"}}), "self.a <= self.b");
    assert!(verdict(&schema, &json!({"spec": {"a": 1, "b": 2}}), None).is_empty());
    assert_eq!(
        verdict(&schema, &json!({"spec": {"a": 3, "b": 2}}), None),
        ["spec: Invalid value: failed rule: self.a <= self.b"]
    );
    assert_eq!(
        verdict(&schema, &json!({"spec": {"a": 3}}), None),
        ["spec: Invalid value: \"object\": no such key: b evaluating rule: self.a <= self.b"]
    );
}

#[test]
fn a_rule_that_does_not_compile_says_what_and_where() {
    let schema = with_rule(json!({"replicas": {"type": "integer"}}), "self.replica > 0");
    let faults = Rules::compile("x", &schema).unwrap_err();
    assert_eq!(faults[0].hint.as_deref(), Some("did you mean replicas?"));
    assert_eq!(faults[0].error.path, "x.properties[spec].x-kubernetes-validations[0].rule");
    assert!(faults[0].error.message.ends_with(
        "compilation failed: ERROR: <input>:1:5: undefined field 'replica'\n | self.replica > 0\n | ....^"
    ));
}

#[test]
fn bombs_end_with_an_error() {
    let list = json!({"l": {"type": "array", "items": {"type": "integer"}}});
    let items: Vec<i64> = (0..200).collect();
    for rule in [
        "self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, a + b + c + d >= 0))))",
        "self.l.map(a, self.l.map(b, self.l.map(c, self.l))).size() > 0",
        "lists.range(1000000000).size() > 0",
        "self.l.map(a, self.l.map(b, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')).map(x, x.join(',')).map(y, y.replace('x', y)).size() > 0",
        "'%.100000000f'.format([1.0]) == ''",
        "quantity('1e999999999').add(quantity('1')).isGreaterThan(quantity('1'))",
        "'a'.matches('((((a{1000}){1000}){1000}){1000})')",
    ] {
        let schema = with_rule(list.clone(), rule);
        match Rules::compile("", &schema) {
            Ok(Some(rules)) => {
                let schema = structural(&schema).unwrap();
                let errors = rules.validate(&json!({"spec": {"l": items}}), None, &schema);
                assert!(!errors.is_empty(), "{rule}");
            }
            Ok(None) => panic!("no rule"),
            Err(faults) => assert!(!faults.is_empty()),
        }
    }
}

#[test]
fn transition_rules_need_an_old_value() {
    let mut schema = with_rule(json!({"a": {"type": "string"}}), "self.a == oldSelf.a");
    let (old, new) = (json!({"spec": {"a": "x"}}), json!({"spec": {"a": "y"}}));
    assert!(verdict(&schema, &new, None).is_empty());
    assert_eq!(verdict(&schema, &new, Some(&old)).len(), 1);
    let rule = &mut schema["properties"]["spec"]["x-kubernetes-validations"][0];
    *rule = json!({"rule": "!oldSelf.hasValue() || oldSelf.value().a == self.a", "optionalOldSelf": true,
        "messageExpression": "'a is ' + self.a", "fieldPath": ".a", "reason": "FieldValueForbidden"});
    assert!(verdict(&schema, &new, None).is_empty());
    assert_eq!(verdict(&schema, &new, Some(&old)), ["spec.a: Forbidden: a is y"]);
}

const ROOT: &str = "spec.validation.openAPIV3Schema";

/// One case a line, with what a real server says.
const RULES: &str = include_str!("../../../tests/golden/cel/rules.jsonl");
const SCHEMAS: &str = include_str!("../../../tests/golden/cel/schemas.jsonl");
const COSTS: &str = include_str!("../../../tests/golden/cel/costs.jsonl");
const COSTS_OBJECT: &str = include_str!("../../../tests/golden/cel/costs.json");
const OBJECT: &str = include_str!("../../../tests/golden/cel/object.json");
const DIFFERENCES: &str = include_str!("../../../tests/golden/cel/differences.txt");

/// The words about one schema and object: why the schema is refused, else what is wrong with the object.
fn said(schema: &Value, new: &Value, old: Option<&Value>) -> (Vec<String>, Vec<String>) {
    let texts = |errors: Vec<opdev_object::schema::FieldError>| {
        let text = |error: &opdev_object::schema::FieldError| {
            let text = error.to_string();
            text.strip_prefix(ROOT).map_or(text.clone(), |rest| rest.trim_start_matches('.').to_owned())
        };
        let mut texts: Vec<String> = errors.iter().map(text).collect();
        texts.sort();
        texts
    };
    match structural_at(ROOT, schema) {
        Err(errors) => (texts(errors), Vec::new()),
        Ok(schema) => {
            let errors =
                schema.rules.as_ref().map(|rules| rules.validate(new, old, &schema)).unwrap_or_default();
            (Vec::new(), texts(errors))
        }
    }
}

fn strings(value: &Value) -> Vec<String> {
    // A real server's estimates are not refused here, only warned about.
    let all = value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned());
    all.filter(|text| !text.contains(" cost ") || !text.contains(": Forbidden: ")).collect()
}

/// Rules are judged here as by real servers, but for those in `differences.txt`.
#[test]
fn rules_are_judged_as_a_real_server_does() {
    let object: Value = serde_json::from_str(OBJECT).unwrap();
    let known: Vec<String> = DIFFERENCES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut judge = |name: &str, case: &Value, schema: &Value, new: &Value, old: Option<&Value>| {
        let wanted = (strings(&case["refused"]), strings(&case["errors"]));
        let got = said(schema, new, old);
        count += 1;
        if (got == wanted) == known.contains(&name.replace('\n', "\\n")) {
            wrong.push(format!("{name}\n   wanted {wanted:?}\n   got    {got:?}"));
        }
    };
    for line in RULES.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let rule = case["rule"].as_str().unwrap();
        let mut spec = object["schema"].clone();
        spec["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        judge(rule, &case, &schema, &json!({"spec": object["object"]}), None);
    }
    for line in SCHEMAS.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        judge(case["name"].as_str().unwrap(), &case, &case["schema"], &case["new"], case.get("old"));
    }
    assert!(count > 600, "{count}");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Pieces of rules put together at random: whatever comes of it, it ends, and nothing panics.
#[test]
fn no_rule_panics() {
    let rules: Vec<Vec<char>> = RULES
        .lines()
        .map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            case["rule"].as_str().unwrap().chars().collect()
        })
        .collect();
    let object: Value = serde_json::from_str(OBJECT).unwrap();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut roll = |sides: usize| random.below(sides);
    let mut compiled = 0;
    for _ in 0..4000 {
        let (a, b) = (&rules[roll(rules.len())], &rules[roll(rules.len())]);
        let mut text: String = a[..roll(a.len() + 1)].iter().collect();
        match roll(4) {
            0 => {
                text.push_str(["(", "[", "{", ".", "\\", "'", "-9223372036854775808", "\u{0}", "é"][roll(9)]);
            }
            1 => text.push_str(["&&", "||", "?", ":", "==", ".map(x,", ".size()", " in ", "[0]"][roll(9)]),
            _ => {}
        }
        text.extend(b[roll(b.len() + 1)..].iter());
        let mut spec = object["schema"].clone();
        spec["x-kubernetes-validations"] = json!([{"rule": text, "messageExpression": "self.s"}]);
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        compiled += usize::from(said(&schema, &json!({"spec": object["object"]}), None).0.is_empty());
    }
    assert!(compiled > 10, "{compiled}");
}

/// The golden file has the costs of rules at run time, as a real API server counts them.
#[test]
fn costs_are_those_of_a_real_server() {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let objects = [("rules", read(OBJECT)), ("costs", read(COSTS_OBJECT))];
    // Costs that are not counted: after a failure that another part makes up for, and of a time zone that is
    // not known.
    let known = [
        "self.nu == 'x' || true",
        "self.l.exists(x, 1/(x-1) > 0)",
        "self.ts.getHours('Europe/Berlin') == 13",
    ];
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in COSTS.lines() {
        let case = read(line);
        let Some(cost) = case["cost"].as_u64() else { continue };
        let (_, object) = objects.iter().find(|(name, _)| case["of"] == *name).unwrap();
        let this = shape::shape(&object["schema"], "self", false, 0);
        let rule = case["rule"].as_str().unwrap();
        let kind = this.kind.as_ref().unwrap();
        let Ok(program) = program::compile(rule, kind, false, &kind::Kind::Bool) else {
            wrong.push(format!("{rule}\n   does not compile"));
            continue;
        };
        let mut meter = meter::Meter::new(u64::MAX);
        let value = shape::value(&object["object"], &this).unwrap();
        let _ = program.run(&value, None, &mut meter, &library::Library::default());
        count += 1;
        if (meter.cost == cost) == known.contains(&rule) {
            wrong.push(format!("{rule}\n   costs {cost}, not {}", meter.cost));
        }
    }
    assert!(count > 700, "{count}");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// The refusals of rules that cost too much at run time: one rule, its message, or all together.
#[test]
fn what_costs_too_much_is_refused() {
    let list = "[1,2,3,4,5,6,7,8,9,10]";
    let loops = |count: usize, body: &str| {
        let names = ["a", "b", "c", "d", "e"];
        let opened: String = names[..count].iter().map(|name| format!("{list}.all({name}, ")).collect();
        format!("{opened}{body}{}", ")".repeat(count))
    };
    let dear = loops(5, "a + b + c + d + e < 1000");
    let object = json!({"spec": {"a": 1}});
    let said = |rule: Value| {
        let mut schema = with_rule(json!({"a": {"type": "integer"}}), "true");
        schema["properties"]["spec"]["x-kubernetes-validations"] = rule;
        verdict(&schema, &object, None)
    };
    assert_eq!(
        said(json!([{"rule": dear}, {"rule": "false"}])),
        [format!(
            "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation rules \
             will be run due to call cost exceeds limit for rule: {dear}"
        )]
    );
    let words = format!("string({dear})");
    let words = words.replace("string(", "[1].map(z, ") + ".size() == 1 ? 'a' : 'b'";
    assert_eq!(
        said(json!([{"rule": "false", "messageExpression": words}, {"rule": "false"}])),
        [format!(
            "spec: Invalid value: \"object\": no further validation rules will be run due to call cost exceeds limit for \
             messageExpression: {words:?}"
        )]
    );
    // Each is cheap enough, but not sixty of them.
    let cheap = loops(
        4,
        "a + b + c + d < 1000 && 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.contains('aaaaaaaaaaaaaaaaaaaa')",
    );
    let many: Vec<Value> = (0..60).map(|_| json!({"rule": cheap})).collect();
    assert_eq!(
        said(json!(many)),
        [
            "spec: Invalid value: \"object\": validation failed due to running out of cost budget, no further validation rules \
          will be run"
        ]
    );
    assert_eq!(said(json!(many[..10])), [""; 0]);
}

/// The errors of values without a declared type, in a real API server's words.
#[test]
fn values_without_a_type_are_looked_into_when_they_are_there() {
    let told = "call arguments did not match a supported operator, function or macro signature for rule: ";
    for (rule, says) in [
        ("dyn(null).foo == 1", "no such key: foo evaluating rule: "),
        ("dyn('a').foo == 1", "no such key: foo evaluating rule: "),
        ("dyn([1]).foo == 1", "unsupported index type 'string' in list evaluating rule: "),
        ("!has(dyn(null).foo)", ""),
        ("!has(dyn(1).foo)", ""),
        ("has(dyn(null).foo.bar)", "no such key: foo evaluating rule: "),
        ("has(dyn([1]).foo)", "unsupported index type 'string' in list evaluating rule: "),
        ("dyn(1)['a'] == 1", "no such key: a evaluating rule: "),
        ("dyn([1])['a'] == 1", "unsupported index type 'string' in list evaluating rule: "),
        ("!dyn(null).?foo.hasValue() && !dyn(1)[?'a'].hasValue()", ""),
        ("dyn(null).all(x, true)", "got 'types.Null', expected iterable type evaluating rule: "),
        ("dyn('a').map(x, x).size() == 0", "got 'types.String', expected iterable type evaluating rule: "),
        ("dyn(1).isInteger()", "'no such overload: isInteger(int)': "),
        ("dyn(1).replace('a', 'b') == ''", "'no such overload: replace(int, string, string)': "),
        ("dyn(1).startsWith('a')", "'no such overload': "),
        ("dyn(1).size() == 1", "'no such overload: size': "),
        ("dyn(null) > 1", "'no such overload: _>_': "),
        ("1 > dyn(null)", "'no such overload': "),
        ("dyn(null) + 1 == 1", "'no such overload: _+_': "),
        ("sets.contains(dyn(1), [1])", "'no such overload: sets.contains(int, list)': "),
    ] {
        let found =
            verdict(&with_rule(json!({"a": {"type": "integer"}}), rule), &json!({"spec": {"a": 1}}), None);
        let told = if says.starts_with('\'') { told } else { "" };
        let wanted = format!("spec: Invalid value: \"object\": {says}{told}{rule}");
        let wanted = if says.is_empty() { Vec::new() } else { vec![wanted] };
        assert_eq!(found, wanted, "{rule}");
    }
}

/// Since 1.37 an item that a literal has twice stands for no other one.
#[test]
fn sets_and_maps_are_equal_whatever_their_order_and_only_then() {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "properties": {"name": text}, "required": ["name"]});
    let properties = json!({
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": item},
    });
    let value = json!({"spec": {"set": ["a", "b"], "map": [{"name": "a"}, {"name": "b"}]}});
    for (rule, holds) in [
        ("self.set == ['b', 'a']", true),
        ("self.set == ['a', 'a']", false),
        ("self.set + ['b', 'c'] == ['a', 'b', 'c']", true),
        ("self.map == self.map + self.map", true),
        ("self.map == [self.map[1], self.map[0]]", true),
        ("self.map == [self.map[0], self.map[0]]", false),
    ] {
        let found = verdict(&with_rule(properties.clone(), rule), &value, None);
        assert_eq!(found.is_empty(), holds, "{rule}: {found:?}");
    }
}

/// The golden file has the worst-case costs of rules, as a real API server estimates them.
#[test]
fn estimates_are_those_of_a_real_server() {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let schemas = [("rules", read(OBJECT)), ("costs", read(COSTS_OBJECT))];
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in COSTS.lines() {
        let case = read(line);
        let (_, object) = schemas.iter().find(|(name, _)| case["of"] == *name).unwrap();
        let this = shape::shape(&object["schema"], "self", false, 0);
        let (rule, estimate) = (case["rule"].as_str().unwrap(), case["estimate"].as_u64().unwrap());
        count += 1;
        let own = cost::worst(rule, &this, false);
        if own != Some(estimate) {
            wrong.push(format!("{rule}\n   may cost {estimate}, not {own:?}"));
        }
    }
    assert!(count > 700, "{count}");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}
