//! Charts that are broken, each in one place, and none of them is green.

use super::{ci, demo_project, told};
use std::fs;
use std::sync::Mutex;

/// One way to break a template; `None` where the template has nothing to break that way.
type Break = fn(&str) -> Option<String>;

fn instead(text: &str, what: &str, by: &str) -> Option<String> {
    text.contains(what).then(|| text.replacen(what, by, 1))
}

/// The first object gets a label more.
fn labelled(text: &str, label: &str) -> Option<String> {
    instead(text, "  labels:", &format!("  labels:\n    {label}"))
}

fn before(text: &str, what: &str) -> Option<String> {
    Some(format!("{what}\n{text}"))
}

/// Ways to break any template so that it cannot be rendered, by name.
const UNRENDERED: [(&str, Break); 18] = [
    // It cannot be parsed.
    ("an action that is not closed", |text| instead(text, " }}", " ")),
    ("an action that is not opened", |text| instead(text, "{{ ", "{ ")),
    ("an unknown function", |text| instead(text, "include ", "inclde ")),
    ("an end too many", |text| Some(format!("{text}{{{{ end }}}}\n"))),
    ("an end too few", |text| before(text, "{{ if true }}")),
    ("an unknown variable", |text| before(text, "{{ $nobody }}")),
    ("a comment that is not closed", |text| before(text, "{{/* for ever")),
    ("a text that is not closed", |text| before(text, "{{ \"a }}")),
    ("an else without an if", |text| before(text, "{{ else }}")),
    // It cannot be executed.
    ("an unknown template", |text| instead(text, ".labels\"", ".lables\"")),
    ("a chart that refuses", |text| before(text, "{{ fail \"refused\" }}")),
    ("a value that is required", |text| before(text, "{{ required \"is needed\" .Values.nobody }}")),
    ("a field of nothing", |text| before(text, "{{ .Values.nobody.name }}")),
    ("an item that is not there", |text| before(text, "{{ index (list 1) 5 }}")),
    ("a division by zero", |text| before(text, "{{ div 1 0 }}")),
    ("an argument too few", |text| before(text, "{{ trunc 3 }}")),
    ("an argument of another type", |text| before(text, "{{ nindent \"a\" \"b\" }}")),
    ("a template that includes itself", |text| {
        before(text, "{{ define \"circle\" }}{{ include \"circle\" . }}{{ end }}{{ include \"circle\" . }}")
    }),
];

/// Ways to break any template that makes an object, by name. These take longer: there is an API server that
/// has to be asked.
const REFUSED: [(&str, Break); 20] = [
    // It makes no object.
    ("wrong indentation", |text| instead(text, "\nmetadata:", "\n metadata:")),
    ("a tab for indentation", |text| instead(text, "  name: ", "\tname: ")),
    ("a mark of a merge", |text| before(text, "<<<<<<< HEAD")),
    ("a list instead of an object", |text| before(text, "- a\n---")),
    ("no kind", |text| instead(text, "\nkind: ", "\nkid: ")),
    ("no version", |text| instead(text, "apiVersion: ", "apVersion: ")),
    ("no name", |text| instead(text, "  name: ", "  nome: ")),
    // The API server refuses it.
    ("an unknown kind", |text| instead(text, "\nkind: ", "\nkind: No")),
    ("an unknown group", |text| instead(text, "apiVersion: ", "apiVersion: no.such.group/")),
    ("a name with a capital letter", |text| instead(text, "  name: ", "  name: Upper_")),
    ("a namespace that is not there", |text| {
        instead(text, "\nmetadata:", "\nmetadata:\n  namespace: nowhere")
    }),
    ("a label that is none", |text| labelled(text, "a: \"b c!\"")),
    ("a list for a text", |text| labelled(text, "a: [1]")),
    ("a key of a label that is none", |text| labelled(text, "a b: c")),
    ("the same object twice", |text| Some(format!("{text}---\n{text}"))),
    // It never comes to rest, or leaves something behind.
    ("a random label", |text| labelled(text, "a: {{ randAlphaNum 8 | quote }}")),
    ("another identity each time", |text| labelled(text, "a: {{ uuidv4 | quote }}")),
    ("the time", |text| labelled(text, "a: n{{ now.UnixNano }}")),
    ("the number of the revision", |text| labelled(text, "a: r{{ .Release.Revision }}")),
    ("a finalizer that nobody answers", |text| {
        instead(text, "\nmetadata:", "\nmetadata:\n  finalizers: [example.com/nobody]")
    }),
];

/// Templates, each with a sample that has it rendered, and whether all of its breaks are tried.
const TEMPLATES: [(&str, &str, bool); 6] = [
    ("samples/memcached.yaml", "charts/memcached/templates/deployment.yaml", true),
    ("samples/memcached.yaml", "charts/memcached/templates/service.yaml", true),
    ("samples/memcached.yaml", "charts/memcached/templates/serviceaccount.yaml", false),
    ("samples/hello.yaml", "charts/hello/templates/hello.yaml", true),
    ("samples/hello.yaml", "charts/hello/templates/greeter.yaml", false),
    ("samples/hello-ingress.yaml", "charts/hello/templates/ingress.yaml", false),
];

/// One file, and what stands there instead of what.
type Edit = (&'static str, &'static str, &'static str, &'static str);

const EDITS: [Edit; 39] = [
    // Chart.yaml
    ("samples/memcached.yaml", "charts/memcached/Chart.yaml", "name: memcached\n", ""),
    ("samples/memcached.yaml", "charts/memcached/Chart.yaml", "version: 0.1.0\n", ""),
    ("samples/memcached.yaml", "charts/memcached/Chart.yaml", "version: 0.1.0", "version: one"),
    ("samples/memcached.yaml", "charts/memcached/Chart.yaml", "type: application", "type: program"),
    ("samples/memcached.yaml", "charts/memcached/Chart.yaml", "type: application", "kubeVersion: '>=9.0.0'"),
    (
        "samples/memcached.yaml",
        "charts/memcached/Chart.yaml",
        "type: application",
        "dependencies: [{name: redis, version: 1.0.0, repository: 'https://example.com'}]",
    ),
    ("samples/hello.yaml", "charts/hello/Chart.yaml", "name: hello", "name: ["),
    ("samples/hello.yaml", "charts/hello/Chart.yaml", "version: 0.1.0", "version: 0.1.0\n\tappVersion: a"),
    // values.yaml
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "service:\n", "service: [\n"),
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "# Defaults", "- a\n# Defaults"),
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "  port: 11211", "  port: 70000"),
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "  port: 11211", "  port: many"),
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "  type: ClusterIP", "  type: Cluster"),
    (
        "samples/memcached.yaml",
        "charts/memcached/values.yaml",
        "podAnnotations: {}",
        "podAnnotations: a text",
    ),
    (
        "samples/memcached.yaml",
        "charts/memcached/values.yaml",
        "podAnnotations: {}",
        "podAnnotations: {a: 1}",
    ),
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "podLabels: {}", "podLabels: {a: b c}"),
    (
        "samples/memcached.yaml",
        "charts/memcached/values.yaml",
        "resources: {}",
        "resources: {limits: {memory: lots}}",
    ),
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "resources: {}", "resources: [1]"),
    (
        "samples/memcached.yaml",
        "charts/memcached/values.yaml",
        "    port: memcached\nreadiness",
        "    port: 0\nreadiness",
    ),
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "  fsGroup: 11211", "  fsGroup: group"),
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "  runAsUser: 11211", "  runAsUser: -1"),
    (
        "samples/memcached.yaml",
        "charts/memcached/values.yaml",
        "pullPolicy: IfNotPresent",
        "pullPolicy: Sometimes",
    ),
    (
        "samples/memcached.yaml",
        "charts/memcached/values.yaml",
        "tolerations: []",
        "tolerations: [{effect: Maybe}]",
    ),
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "nodeSelector: {}", "nodeSelector: {a: [b]}"),
    (
        "samples/memcached.yaml",
        "charts/memcached/values.yaml",
        "imagePullSecrets: []",
        "imagePullSecrets: name",
    ),
    (
        "samples/memcached.yaml",
        "charts/memcached/values.yaml",
        "  enabled: false",
        "  enabled: true\n  minReplicas: 0",
    ),
    ("samples/memcached.yaml", "charts/memcached/values.yaml", "nameOverride: \"\"", "nameOverride: Name_"),
    ("samples/hello.yaml", "charts/hello/values.yaml", "fullnameOverride: \"\"", "fullnameOverride: a.B"),
    ("samples/hello.yaml", "charts/hello/values.yaml", "greeter:\n", "greeters:\n"),
    ("samples/hello.yaml", "charts/hello/values.yaml", "  image: nginx:1.29-alpine", "  image: ''"),
    ("samples/hello-ingress.yaml", "charts/hello/values.yaml", "pathType: Prefix", "pathType: Suffix"),
    // Parts that templates share.
    (
        "samples/memcached.yaml",
        "charts/memcached/templates/_helpers.tpl",
        "memcached.fullname\" -}}",
        "memcached.name\" -}}",
    ),
    (
        "samples/memcached.yaml",
        "charts/memcached/templates/_helpers.tpl",
        "app.kubernetes.io/name: ",
        "app.kubernetes.io/: ",
    ),
    ("samples/memcached.yaml", "charts/memcached/templates/_helpers.tpl", "{{- end }}", "{{- ende }}"),
    ("samples/hello.yaml", "charts/hello/templates/_helpers.tpl", "index . 0", "index . 7"),
    ("samples/hello.yaml", "charts/hello/templates/_helpers.tpl", "$root.Chart.Name", "$root.Chart.Nome"),
    (
        "samples/hello.yaml",
        "charts/hello/templates/NOTES.txt",
        "{{ .Values.hello.message }}",
        "{{ .Values.hello.message.text }}",
    ),
    // A chart that a chart's operator installs.
    (
        "samples/armada/simple-armada.yaml",
        "charts/testchart/templates/deployment.yaml",
        "replicas: {{",
        "replicas: x{{",
    ),
    ("samples/armada/simple-armada.yaml", "charts/testchart/templates/service.yaml", "include ", "inclde "),
];

/// A chart with one fault.
struct Broken {
    sample: &'static str,
    file: &'static str,
    name: String,
    text: String,
}

/// All charts with one fault.
fn all() -> Vec<Broken> {
    let (_folder, root) = demo_project();
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let mut found = Vec::new();
    for (sample, file, all) in TEMPLATES {
        let good = read(file);
        let refused = if all { &REFUSED[..] } else { &[] };
        for (name, make) in UNRENDERED.iter().chain(refused) {
            let made = make(&good).filter(|text| *text != good);
            found.extend(made.map(|text| Broken { sample, file, name: (*name).to_owned(), text }));
        }
    }
    for (sample, file, from, to) in EDITS {
        let good = read(file);
        let text = instead(&good, from, to).unwrap_or_else(|| panic!("{file} has no {from}"));
        found.push(Broken { sample, file, name: format!("{to:?} for {from:?}"), text });
    }
    found
}

#[test]
fn every_broken_chart_is_red() {
    let all = all();
    assert!(all.len() >= 200, "{} broken charts", all.len());
    let queue = Mutex::new(all);
    let green: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let work = || {
        let (_folder, root) = demo_project();
        loop {
            let Some(Broken { sample, file, name, text }) = queue.lock().unwrap().pop() else { break };
            let path = root.join(file);
            let good = fs::read_to_string(&path).unwrap();
            fs::write(&path, text).unwrap();
            let output = ci(&root, &[sample, "--timeout", "3s"]);
            fs::write(&path, good).unwrap();
            // A chart that does not even load is reported so, and that is no green either.
            if !matches!(output.status.code(), Some(1 | 3)) {
                green.lock().unwrap().push(format!("{file}: {name}:\n{}", told(&output)));
            }
        }
    };
    // Most of the time is spent waiting for what never comes.
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    let green = green.into_inner().unwrap();
    assert!(green.is_empty(), "{} broken charts are not red:\n{}", green.len(), green.join("\n"));
}
