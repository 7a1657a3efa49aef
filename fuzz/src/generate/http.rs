//! Requests to the API server that no client would send: a request as text (`METHOD URI`, headers, an empty
//! line, the body), or bytes for a socket behind the word `RAW`. What it holds is what `http` runs and what
//! an artifact keeps.

use crate::random::Random;
use serde_json::{Value, json};

const METHODS: [&str; 9] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"];
const RESOURCES: [&str; 17] = [
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/events",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/statefulsets",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/fuzz.example.com/v1/namespaces/default/things",
    "/apis/fuzz.example.com/v1/namespaces/default/rules",
];
const PATHS: [&str; 16] = [
    "/",
    "/api",
    "/apis",
    "/version",
    "/healthz",
    "/readyz/ping",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/apis/apps/v1",
    "/opdev/fidelity",
    "/api/v1",
    "/apis/apps",
    "/apis/apps/v1",
    "/metrics",
    "/api/v1/namespaces/default",
    "//api//v1///pods/",
];
const TYPES: [&str; 10] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
    "text/html;;;=",
    "",
];
const ACCEPTS: [&str; 8] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "*/*",
    "a/b;q=9,,;",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
];
const PARAMETERS: [&str; 22] = [
    "watch",
    "resourceVersion",
    "resourceVersionMatch",
    "limit",
    "continue",
    "fieldSelector",
    "labelSelector",
    "timeoutSeconds",
    "dryRun",
    "fieldManager",
    "force",
    "fieldValidation",
    "propagationPolicy",
    "pretty",
    "gracePeriodSeconds",
    "includeObject",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "orphanDependents",
    "as",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "%00",
];
const VALUES: [&str; 24] = [
    "",
    "0",
    "1",
    "-1",
    "true",
    "false",
    "All",
    "99999999999999999999",
    "Exact",
    "NotOlderThan",
    "Strict",
    "Ignore",
    "Foreground",
    "Orphan",
    "metadata.name%3Da",
    "a%20in%20(b,c),!d,e!%3Df",
    "((((",
    "a%3Db,,",
    "%ff%fe",
    "eyJ2IjoxfQ",
    "Table",
    "None",
    "fuzz",
    "%C3%A9%F0%9F%98%80",
];

/// One request as text, or bytes for a socket.
pub fn request(random: &mut Random) -> Vec<u8> {
    if random.chance(2) {
        return raw(random);
    }
    let verb = random.pick(&METHODS);
    let resource = random.pick(&RESOURCES);
    let mut path = if random.chance(10) { random.pick(&PATHS).to_owned() } else { resource.to_owned() };
    let named = !matches!(verb, "POST") || random.chance(10);
    if named && random.chance(85) {
        path.push_str(&format!("/{}", name(random)));
        if random.chance(15) {
            path.push('/');
            let parts = [
                "status",
                "scale",
                "finalize",
                "log",
                "exec",
                "eviction",
                "binding",
                "token",
                "ephemeralcontainers",
                "a/b/c",
                "%2e%2e",
            ];
            path.push_str(random.pick(&parts));
        }
    }
    if random.chance(3) {
        let at = random.below(path.len());
        path.insert_str(at, random.pick(&["%2f", "%00", "..", "//", "%E2%82%AC", "*", "~"]));
    }
    for n in 0..random.below(5) * usize::from(random.chance(50)) {
        path.push(if n == 0 { '?' } else { '&' });
        path.push_str(&format!("{}={}", random.pick(&PARAMETERS), random.pick(&VALUES)));
    }
    let patch = verb == "PATCH";
    let media_type =
        if patch && random.chance(90) { TYPES[3 + random.below(4)] } else { random.pick(&TYPES) };
    let mut text = format!("{verb} {path}\ncontent-type: {media_type}\naccept: {}\n", random.pick(&ACCEPTS));
    if random.chance(5) {
        text.push_str(&format!("x-long: {}\n", "a".repeat(random.below(100_000))));
    }
    text.push('\n');
    let mut bytes = text.into_bytes();
    let start = bytes.len();
    bytes.extend(body(random, resource, media_type));
    if random.chance(15) && bytes.len() > start {
        for _ in 0..1 + random.below(4) {
            let at = start + random.below(bytes.len() - start);
            bytes[at] = if random.chance(50) { random.next() as u8 } else { random.one(b"{}[]\",:0-e\\\n ") };
        }
    }
    bytes
}

fn name(random: &mut Random) -> String {
    match random.below(20) {
        0 => "a".repeat(random.below(400)),
        1 => "UPPER_case".to_owned(),
        2 => "things.fuzz.example.com".to_owned(),
        n => format!("n{}", n % 5),
    }
}

fn body(random: &mut Random, resource: &str, media_type: &str) -> Vec<u8> {
    match random.below(20) {
        0 => Vec::new(),
        1 => nested(random),
        2 => (0..random.below(2_000)).map(|_| random.next() as u8).collect(),
        3 => aliases(random),
        _ if media_type.contains("json-patch") => patch_bomb(random).to_string().into_bytes(),
        _ if media_type.contains("protobuf") => protobuf(random),
        _ => {
            let mut object = object(random, resource);
            for _ in 0..random.below(4) {
                spoil(random, &mut object, 0);
            }
            object.to_string().into_bytes()
        }
    }
}

/// Deep lists and maps, closed or not.
fn nested(random: &mut Random) -> Vec<u8> {
    let depth = random.one(&[90, 99, 101, 126, 129, 251, 5_000, 200_000]);
    let (open, close) =
        random.one(&[("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]"), ("{a: ", "}"), ("- ", "")]);
    let inner = format!(
        "{}1{}",
        open.repeat(depth),
        if random.chance(80) { close.repeat(depth) } else { String::new() }
    );
    let text = match random.below(3) {
        0 => inner,
        _ => format!(
            "{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"n1\"}},\"data\":{inner},\"spec\":{inner}}}"
        ),
    };
    text.into_bytes()
}

/// YAML whose aliases double what they stand for.
fn aliases(random: &mut Random) -> Vec<u8> {
    let mut text = "a0: &a0 [x, x]\n".to_owned();
    for n in 1..random.below(60) {
        text.push_str(&format!("a{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1));
    }
    text.into_bytes()
}

fn patch_bomb(random: &mut Random) -> Value {
    let places = [
        "/data",
        "",
        "/metadata",
        "/metadata/labels",
        "/spec",
        "/spec/template",
        "/data/a",
        "/metadata/managedFields/0",
        "/metadata/-1",
        "/~2",
        "a",
        "/spec/containers/-",
        "/status",
    ];
    let count = random.one(&[1, 2, 5, 50, 9_999, 10_001]);
    (0..count)
        .map(|n| {
            let op = random.pick(&["add", "copy", "copy", "move", "replace", "remove", "test", "none"]);
            let path = match random.below(3) {
                0 => random.pick(&places).to_owned(),
                1 => format!("{}/x{n}", random.pick(&places)),
                _ => format!("/data{}", "/x".repeat(random.below(300))),
            };
            json!({"op": op, "path": path, "from": random.pick(&places), "value": {"x": n}})
        })
        .collect()
}

/// The envelope and something like fields in it, with lengths that lie.
fn protobuf(random: &mut Random) -> Vec<u8> {
    let mut bytes = b"k8s\0".to_vec();
    let text = |field: u8, text: &str| -> Vec<u8> {
        [&[field << 3 | 2, text.len() as u8][..], text.as_bytes()].concat()
    };
    let kind = [text(1, "v1"), text(2, random.pick(&["ConfigMap", "Pod", "Secret", "Status"]))].concat();
    bytes.extend([&[0x0a, kind.len() as u8][..], &kind].concat());
    let mut inner = text(1, "n1");
    for _ in 0..random.below(60) {
        let long = random.chance(10);
        inner = [
            &[random.next() as u8 & 0x7f | 2, if long { 0xff } else { (inner.len() & 0x7f) as u8 }][..],
            &inner,
        ]
        .concat();
    }
    bytes.push(0x12);
    bytes.push((inner.len() & 0x7f) as u8);
    bytes.extend(inner);
    bytes
}

fn rule(random: &mut Random) -> String {
    let bombs = [
        "self.all(a, self.all(b, self.all(c, self.all(d, true))))",
        "self.items.map(x, self.items.map(y, self.items.map(z, x + y + z))).size() > 0",
        "self.s.matches('(a+)+(a+)+(a+)+$')",
        "'x'.matches('((((a{1,200}){1,200}){1,200}){1,200})')",
        "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, [1,2,3,4,5,6,7,8,9].all(g, [1,2,3,4,5,6,7,8,9].all(h, true))))))))",
        "self == oldSelf",
        "1/0 == 1",
        "duration('99999999999h') > duration('1s')",
        "timestamp('0000-00-00T00:00:00Z') < now",
        "9223372036854775807 + 1 > 0",
        "self.s.replace('a', 'aaaaaaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').size() > 0",
        "quantity('1e999999').isGreaterThan(quantity('1'))",
    ];
    match random.below(6) {
        0 => "(".repeat(random.below(20_000)),
        1 => format!("{}true", "!".repeat(random.below(20_000))),
        2 => vec!["true"; 1 + random.below(3_000)].join(" && "),
        _ => random.pick(&bombs).to_owned(),
    }
}

fn definition(random: &mut Random) -> Value {
    let plural = random.pick(&["things", "rules"]);
    let kind = if plural == "things" { "Thing" } else { "Rule" };
    let mut schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    if random.chance(60) {
        let rules: Vec<Value> = (0..1 + random.below(3))
            .map(|_| json!({"rule": rule(random), "messageExpression": rule(random)}))
            .collect();
        schema["x-kubernetes-validations"] = Value::from(rules);
        schema["properties"] =
            json!({"s": {"type": "string"}, "items": {"type": "array", "items": {"type": "integer"}}});
    }
    if random.chance(30) {
        let mut deep = json!({"type": "string"});
        for _ in 0..random.below(60) {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        schema["properties"]["deep"] = deep;
    }
    if random.chance(20) {
        schema["properties"]["p"] = json!({"type": "string", "pattern": random.pick(&["(a*)*b", "[", "((a{1,1000}){1,1000}){1,1000}", "\\p{L}+"]), "default": 1});
    }
    let column = random.pick(&[
        ".spec.a",
        ".spec[*]..[?(@.a==\"b\")]",
        "{{",
        ".a[-9999999999:]",
        "..",
        ".metadata.name",
    ]);
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.fuzz.example.com")},
        "spec": {"group": "fuzz.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": column}],
                "schema": {"openAPIV3Schema": schema}}]}})
}

fn object(random: &mut Random, resource: &str) -> Value {
    let name = name(random);
    let many = random.one(&[0, 1, 3, 3, 3, 2_000]);
    let containers: Vec<Value> = (0..many).map(|n| json!({"name": format!("c{n}"), "image": "i", "ports": [{"containerPort": n}], "env": [{"name": "A", "value": "b"}]})).collect();
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers, "restartPolicy": "Never"}});
    let meta = json!({"name": name, "labels": {"app": "a"}, "annotations": {"a": "b".repeat(random.one(&[1, 1, 1, 300_000]))},
        "finalizers": if random.chance(5) { vec!["fuzz.example.com/keep"] } else { Vec::new() }});
    let kind = match resource.rsplit('/').next().unwrap_or_default() {
        "customresourcedefinitions" => return definition(random),
        "pods" => json!({"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}),
        "services" => {
            json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}], "selector": {"app": "a"}}})
        }
        "deployments" => {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": random.one(&[0, 1, 2, -1]), "selector": {"matchLabels": {"app": "a"}}, "template": template}})
        }
        "statefulsets" => {
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"serviceName": "s", "selector": {"matchLabels": {"app": "a"}}, "template": template}})
        }
        "jobs" => json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}),
        "ingresses" => {
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {"rules": [{"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "a", "port": {"number": 80}}}}]}}]}})
        }
        "leases" => {
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "x", "renewTime": "2026-01-01T00:00:00.000000Z"}})
        }
        "secrets" => {
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "YQ=="}, "stringData": {"b": "c"}})
        }
        "events" => {
            json!({"apiVersion": "v1", "kind": "Event", "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"}, "reason": "x"})
        }
        "namespaces" => json!({"apiVersion": "v1", "kind": "Namespace"}),
        "nodes" => json!({"apiVersion": "v1", "kind": "Node", "spec": {}}),
        "clusterroles" => {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [{"apiGroups": [""], "resources": ["*"], "verbs": ["get"]}]})
        }
        "selfsubjectaccessreviews" => {
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})
        }
        "things" => {
            json!({"apiVersion": "fuzz.example.com/v1", "kind": "Thing", "spec": {"a": [1, {"b": null}], "replicas": 1}, "s": "a".repeat(random.one(&[1, 30, 10_000])), "items": (0..many).collect::<Vec<_>>()})
        }
        "rules" => {
            json!({"apiVersion": "fuzz.example.com/v1", "kind": "Rule", "s": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "items": (0..many).collect::<Vec<_>>()})
        }
        _ => json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b", "c": "d"}}),
    };
    let mut object = kind;
    object["metadata"] = meta;
    if random.chance(5) {
        let fields: serde_json::Map<String, Value> =
            (0..many).map(|n| (format!("f:{n}"), json!({"k:{\"a\":1}": {}, "v:": 1, ".": {}}))).collect();
        object["metadata"]["managedFields"] = json!([{"manager": "m", "operation": random.pick(&["Apply", "Update", "X"]), "apiVersion": random.pick(&["v1", "", "a/b/c"]), "fieldsType": "FieldsV1", "fieldsV1": fields}]);
    }
    object
}

/// Puts something else somewhere.
fn spoil(random: &mut Random, value: &mut Value, depth: usize) {
    let here = depth > 8 || random.chance(15);
    match value {
        Value::Object(map) if !here && !map.is_empty() => {
            let at = random.below(map.len());
            if let Some((_, inner)) = map.iter_mut().nth(at) {
                spoil(random, inner, depth + 1);
            }
        }
        Value::Array(list) if !here && !list.is_empty() => {
            let at = random.below(list.len());
            spoil(random, &mut list[at], depth + 1);
        }
        other => {
            *other = match random.below(14) {
                0 => Value::Null,
                1 => json!(-1),
                2 => json!(1e300),
                3 => json!(u64::MAX),
                4 => json!(""),
                5 => json!("x".repeat(70_000)),
                6 => json!([]),
                7 => json!({}),
                8 => json!([[[[]]], {}, null, 1, "a"]),
                9 => {
                    json!({"$patch": random.pick(&["delete", "replace", "merge", "x"]), "$retainKeys": ["a"], "$setElementOrder/containers": [{"name": "z"}], "$deleteFromPrimitiveList/finalizers": ["a"]})
                }
                10 => json!(true),
                11 => json!("2026-02-30T25:61:61Z"),
                12 => json!("\u{0}\u{feff}\u{1F600}"),
                _ => json!("{{ . }}"),
            };
        }
    }
}

/// Bytes for a socket, behind the word that says so.
fn raw(random: &mut Random) -> Vec<u8> {
    let mut bytes = b"RAW\n".to_vec();
    let line = "GET /api/v1/namespaces HTTP/1.1\r\n";
    let text: Vec<u8> = match random.below(12) {
        0 => (0..random.below(5_000)).map(|_| random.next() as u8).collect(),
        1 => format!("{line}host: a\r\nx: {}\r\n\r\n", "y".repeat(2_000_000)).into_bytes(),
        2 => format!("{line}{}\r\n", "a: b\r\n".repeat(20_000)).into_bytes(),
        3 => b"POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\n\r\n{}".to_vec(),
        4 => b"POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{}".to_vec(),
        5 => b"POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}".to_vec(),
        6 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x04\xff\xff\xff\xff\xff".to_vec(),
        7 => b"GET /\xff\xfe HTTP/1.1\r\n\r\n".to_vec(),
        8 => format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "a/".repeat(100_000)).into_bytes(),
        9 => line.repeat(200).into_bytes(),
        10 => format!("POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ncontent-length: 4000000\r\n\r\n{}", "x".repeat(4_000_000)).into_bytes(),
        _ => b"CONNECT a:1 HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n".to_vec(),
    };
    bytes.extend(text);
    bytes
}
