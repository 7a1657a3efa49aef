//! Tests of markers: what is read of them, and what is said of odd ones.

use super::*;

fn value(text: &str, target: Target) -> Value {
    value_of(text, target, "v0.21.0")
}

fn value_of(text: &str, target: Target, version: &str) -> Value {
    match read(text, 0, target, &Profile::parse(version)) {
        Reading::Known(marker) => marker.value,
        other => panic!("{text}: {other:?}"),
    }
}

fn bad(text: &str, target: Target) -> (usize, String) {
    match read(text, 0, target, &Profile::parse("v0.21.0")) {
        Reading::Bad(at, message) => (at, message),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn unnamed_arguments() {
    for (text, json) in [
        ("+kubebuilder:validation:Minimum=0", "0"),
        ("+kubebuilder:validation:Minimum=-1.5", "-1.5"),
        ("+kubebuilder:validation:Maximum:=10", "10"),
        ("+kubebuilder:validation:UniqueItems=false", "false"),
        ("+kubebuilder:validation:Pattern=`^[a-z]+(;|,)$`", r#""^[a-z]+(;|,)$""#),
        ("+kubebuilder:validation:Pattern=^[a-z]+$", r#""^[a-z]+$""#),
        (r#"+kubebuilder:validation:Pattern="a\tb\\d\x41\u00e9\101""#, r#""a\tb\\dAéA""#),
        ("+kubebuilder:validation:Enum=A;B;C", r#"["A","B","C"]"#),
        ("+kubebuilder:validation:Enum={A,B}", r#"["A","B"]"#),
        (r#"+kubebuilder:validation:Enum="";1;true;two words"#, r#"["",1,true,"two words"]"#),
        ("+kubebuilder:validation:items:MinLength=3", "3"),
        ("+kubebuilder:default=some words", r#""some words""#),
        ("+kubebuilder:default={a,b}", r#"["a","b"]"#),
        ("+kubebuilder:default={}", "{}"),
        ("+kubebuilder:default={{a: 1},{a: 2}}", r#"[{"a":1},{"a":2}]"#),
        (
            r#"+kubebuilder:default={size: 3, deep: {"x y": {1,2}, on: true}}"#,
            r#"{"size":3,"deep":{"x y":[1,2],"on":true}}"#,
        ),
        ("+kubebuilder:example=1.50", "1.5"),
        ("+kubebuilder:example=-7", "-7"),
        ("+default={\"a\": [1.0, null]}", r#"{"a":[1,null]}"#),
        ("+default=ref(Something)", "null"),
        ("+nullable", "null"),
    ] {
        assert_eq!(value(text, Target::Field), serde_json::from_str::<Value>(json).unwrap(), "{text}");
    }
    assert_eq!(value("+groupName=a.example.com", Target::Package), "a.example.com");
    assert_eq!(value("+groupName=", Target::Package), "");
    assert_eq!(value("+groupName", Target::Package), "");
}

#[test]
fn limits_of_declarative_validation_end_at_a_comment() {
    let of = |text: &str, version: &str| match read(text, 0, Target::Field, &Profile::parse(version)) {
        Reading::Known(marker) => marker.value.to_string(),
        Reading::Bad(at, message) => format!("{at}: {message}"),
        other => format!("{other:?}"),
    };
    for (text, said) in [
        ("+k8s:maxItems=10 # ten", "10"),
        ("+k8s:minimum=1#one", "1"),
        ("+k8s:maximum=2.50e3", "2500"),
        ("+kubebuilder:validation:MaxItems= 7 ", "7"),
        ("+kubebuilder:validation:items:Maximum=12", "12"),
        (
            "+kubebuilder:validation:Maximum=12 # no comment",
            "32: invalid maximum value: strconv.ParseFloat: parsing \"12 # no comment\": invalid syntax",
        ),
        ("+k8s:maxItems=1.5", "14: invalid maxItems value: strconv.Atoi: parsing \"1.5\": invalid syntax"),
        ("+k8s:minimum", "12: invalid minimum value: strconv.ParseFloat: parsing \"\": invalid syntax"),
    ] {
        assert_eq!(of(text, "v0.23.0"), said, "{text}");
    }
    assert_eq!(of("+k8s:maxItems=10", "v0.22.0"), "Unknown");
    let told = unknown("+k8s:maxItems=10", Target::Field, &Profile::parse("v0.22.0")).unwrap();
    assert_eq!(told.0, "+k8s:maxItems is not known to controller-gen v0.22.0 and has no effect");
}

#[test]
fn named_arguments() {
    let column =
        r#"+kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1"#;
    let expected = r#"{"name":"Age","type":"date","JSONPath":".metadata.creationTimestamp","priority":1}"#;
    assert_eq!(value(column, Target::Type), serde_json::from_str::<Value>(expected).unwrap());
    let resource = "+kubebuilder:resource:path=things,shortName=th;thing,scope=Cluster";
    let expected = r#"{"path":"things","shortName":["th","thing"],"scope":"Cluster"}"#;
    assert_eq!(value(resource, Target::Type), serde_json::from_str::<Value>(expected).unwrap());
    let rule = r#"+kubebuilder:validation:XValidation:rule="self == 'a,b'",message="no, never",optionalOldSelf=true"#;
    let expected = r#"{"rule":"self == 'a,b'","message":"no, never","optionalOldSelf":true}"#;
    assert_eq!(value(rule, Target::Field), serde_json::from_str::<Value>(expected).unwrap());
    let rbac = r#"+kubebuilder:rbac:groups="",resources=pods;pods/log,verbs={get,list}"#;
    let expected = r#"{"groups":[""],"resources":["pods","pods/log"],"verbs":["get","list"]}"#;
    assert_eq!(value(rbac, Target::Package), serde_json::from_str::<Value>(expected).unwrap());
}

#[test]
fn words_that_look_like_numbers() {
    for (text, json) in [
        ("+kubebuilder:example=100Mi", r#""100Mi""#),
        ("+kubebuilder:example=2024-01-15", r#""2024-01-15""#),
        ("+kubebuilder:example=087bdd", r#""087bdd""#),
        ("+kubebuilder:example=sha256:08a7b", r#""sha256:08a7b""#),
        ("+kubebuilder:example={cpu: 2, mem: 64Gi}", r#"{"cpu":2,"mem":"64Gi"}"#),
    ] {
        assert_eq!(
            value_of(text, Target::Field, "v0.22.0"),
            serde_json::from_str::<Value>(json).unwrap(),
            "{text}"
        );
    }
    assert_eq!(
        bad("+kubebuilder:example=100Mi", Target::Field),
        (24, "extra arguments provided: \"Mi\"".into())
    );
}

#[test]
fn errors_point_at_their_byte() {
    for (text, at, message) in [
        ("+kubebuilder:validation:Minimum=abc", 32, "expected integer or float, got \"abc\""),
        ("+kubebuilder:validation:MaxLength=1.5", 34, "expected integer, got \"1.5\""),
        ("+kubebuilder:validation:MaxLength", 33, "missing argument \"\""),
        ("+kubebuilder:validation:UniqueItems=yes", 36, "expected true or false, got \"yes\""),
        ("+kubebuilder:validation:Pattern=\"abc", 32, "literal not terminated"),
        ("+kubebuilder:default={a: 1", 26, "expected comma, got \"\""),
        ("+nullable=true", 10, "extra arguments provided: \"true\""),
    ] {
        assert_eq!(bad(text, Target::Field), (at, message.to_owned()), "{text}");
    }
    let scale = "+kubebuilder:subresource:scale:specpath=.spec.replicas,foo=.x";
    assert_eq!(bad(scale, Target::Type), (55, "unknown argument \"foo\"".to_owned()));
    let scale = "+kubebuilder:subresource:scale:specpath=.spec.replicas";
    assert_eq!(bad(scale, Target::Type).1, "missing argument \"statuspath\"");
}

#[test]
fn odd_markers_get_a_suggestion() {
    let profile = Profile::parse("v0.21.0");
    let hint = |text: &str, target: Target| unknown(text, target, &profile).map(|(_, hint)| hint);
    for (text, wanted) in [
        ("+kubebuilder:validation:Minimun=1", "Did you mean +kubebuilder:validation:Minimum?"),
        ("+kubebuilder:validaton:MaxLength=1", "Did you mean +kubebuilder:validation:MaxLength?"),
        ("+kubebuilder:validation:nullable", "Did you mean +nullable?"),
        ("+kube:validation:Optional", "Did you mean +kubebuilder:validation:Optional?"),
        ("+optinal", "Did you mean +optional?"),
        ("+optional because", "Write +optional on a line of its own."),
        ("+kubebuilder:storageversion", "Move it to a type, or remove it."),
        ("+k8s:maxLength=3", "Say the same with a +kubebuilder:validation marker."),
        ("+kubebuilder:whatever:this=1", "Remove it, or check its spelling."),
        ("+k8s:listType=map", "Pin a newer CONTROLLER_TOOLS_VERSION, or remove the marker."),
    ] {
        assert_eq!(hint(text, Target::Field).as_deref(), Some(wanted), "{text}");
    }
    for text in [
        "+genclient",
        "+kubebuilder:object:generate=true",
        "+protobuf=true",
        "+patchStrategy=merge",
        "+1",
        "+",
    ] {
        assert_eq!(hint(text, Target::Field), None, "{text}");
    }
}

#[test]
fn nothing_hangs_or_panics() {
    let deep = format!("+kubebuilder:default={}", "{".repeat(5000));
    let deeper = format!("+kubebuilder:default={}1", "{a:".repeat(5000));
    let long = format!("+kubebuilder:validation:Enum={}", "a;".repeat(5000));
    for text in [&deep, &deeper, &long] {
        read(text, 0, Target::Field, &Profile::default());
    }
    let seeds = [
        r#"+kubebuilder:default={a: "x", b: {1,2}, c: 1;2}"#,
        r#"+kubebuilder:validation:XValidation:rule="self == 'é'",message=`no`"#,
        "+kubebuilder:printcolumn:name=\"A\",type=date,JSONPath=.a,priority=0x1f",
    ];
    for seed in seeds {
        for (cut, _) in seed.char_indices() {
            for middle in ["", "\"", "`", "{", "}", ";", "=", ":", "-", "0x", "\\", "é", "'"] {
                let text = format!("{}{middle}{}", &seed[..cut], &seed[cut..]);
                for target in [Target::Field, Target::Type, Target::Package] {
                    for version in ["v0.21.0", "v0.22.0", "v0.23.0"] {
                        read(&text, 0, target, &Profile::parse(version));
                    }
                }
                if cut % 16 == 0 {
                    unknown(&text, Target::Field, &Profile::default());
                }
            }
        }
    }
}
