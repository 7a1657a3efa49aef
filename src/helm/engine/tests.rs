//! A render with a memory gives what a render without one gives, whatever was edited in between.

use super::*;
use crate::chart::Chart;
use crate::chart::FileSet;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A world whose randomness starts again with every render.
struct World {
    state: Mutex<u64>,
}

impl World {
    fn new() -> World {
        World { state: Mutex::new(7) }
    }
}

impl Environment for World {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn random(&self, buffer: &mut [u8]) {
        let mut state = self.state.lock().unwrap();
        for byte in buffer {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (*state >> 56) as u8;
        }
    }

    fn lookup(&self, _: &str, kind: &str, _: &str, name: &str) -> Result<Value, FuncError> {
        Ok(json!({"kind": kind, "metadata": {"name": name}}))
    }
}

pub(super) type Texts = BTreeMap<String, String>;

pub(super) fn texts(files: &[(&str, &str)]) -> Texts {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

pub(super) fn load(files: &Texts) -> Result<Chart, crate::chart::ChartError> {
    Chart::load(&files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect::<FileSet>())
}

/// The part of a render that a user sees.
type Shown = Result<(String, String, String, Vec<String>), String>;

struct Case {
    capabilities: Capabilities,
    memory: Memory,
    cache: Arc<ParseCache>,
}

impl Case {
    fn new() -> Case {
        Case {
            capabilities: Capabilities::default_for(Compat::V3),
            memory: Memory::default(),
            cache: Arc::default(),
        }
    }

    fn run(
        &self,
        chart: &Chart,
        values: &Value,
        revision: i64,
        compat: Compat,
        full: bool,
    ) -> (Shown, usize) {
        let world = World::new();
        let release = ReleaseInfo { revision, ..ReleaseInfo::install("rel", "ns") };
        let input = RenderInput {
            compat,
            cache: (!full).then(|| Arc::clone(&self.cache)),
            memory: (!full).then_some(&self.memory),
            parallel: full,
            ..RenderInput::new(values, release, &self.capabilities, &world)
        };
        match render(chart, &input) {
            Ok(r) => {
                let hooks =
                    r.hooks.iter().map(|hook| format!("{}\n{}\n", hook.path, hook.manifest)).collect();
                (Ok((r.manifest, hooks, r.notes, r.warnings)), r.executed)
            }
            Err(error) => (Err(format!("{error:?}")), 0),
        }
    }

    /// Renders both ways; how many templates ran with the memory.
    fn same(&self, files: &Texts, values: &Value) -> usize {
        let chart = load(files).unwrap();
        let (kept, executed) = self.run(&chart, values, 1, Compat::V3, false);
        let full = self.run(&chart, values, 1, Compat::V3, true).0;
        assert_eq!(kept, full);
        assert!(full.is_ok(), "{full:?}");
        executed
    }
}

pub(super) fn web() -> Texts {
    texts(&[
        (
            "Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: \"1\"\ndependencies:\n- {name: db, version: \"*\", condition: db.enabled}\n",
        ),
        (
            "values.yaml",
            "name: web\nreplicas: 1\nimage: {repository: r, tag: \"1\"}\nports: [{name: a, port: 1}]\nlabels: {a: b}\nextra: \"{{ .Values.name }}-x\"\nglobal: {zone: z}\nrandom: false\nwrite: false\ndb: {enabled: true, size: 1Gi}\n",
        ),
        (
            "templates/_helpers.tpl",
            "{{- define \"web.name\" -}}{{ .Values.name | trunc 5 }}{{- end }}\n{{- define \"web.labels\" -}}app: {{ include \"web.name\" . }}\n{{- with .Values.labels }}\n{{ toYaml . }}\n{{- end }}{{- end }}\n",
        ),
        (
            "templates/a.yaml",
            "kind: Deployment\nmetadata:\n  name: {{ include \"web.name\" . }}\n  labels:\n    {{- include \"web.labels\" . | nindent 4 }}\nspec:\n  replicas: {{ .Values.replicas }}\n  image: {{ printf \"%s:%s\" .Values.image.repository .Values.image.tag }}\n",
        ),
        (
            "templates/b.yaml",
            "kind: Service\nmetadata: {name: b}\nspec:\n  ports:\n  {{- range $i, $p := .Values.ports }}\n  - name: {{ $p.name }}\n    port: {{ $p.port }}\n    index: {{ $i }}\n  {{- end }}\n---\nkind: ConfigMap\nmetadata: {name: {{ tpl .Values.extra . }}}\n",
        ),
        (
            "templates/c.yaml",
            "kind: ConfigMap\nmetadata: {name: files}\ndata:\n{{ (.Files.Glob \"conf/*\").AsConfig | indent 2 }}\n",
        ),
        (
            "templates/d.yaml",
            "{{- if .Values.random }}\nkind: Secret\nmetadata: {name: {{ randAlphaNum 8 | lower }}, rev: {{ .Release.Revision }}}\n{{- end }}\n",
        ),
        (
            "templates/e.yaml",
            "kind: Secret\nmetadata: {name: e}\ndata: {a: {{ randAlphaNum 4 | b64enc }}, b: {{ (lookup \"v1\" \"Secret\" \"\" \"e\").kind }}}\n",
        ),
        (
            "templates/f.yaml",
            "{{- if .Values.write }}{{ $_ := set .Values \"name\" \"written\" }}{{- end }}\nkind: ConfigMap\nmetadata: {name: f, zone: {{ .Values.global.zone }}}\n",
        ),
        (
            "templates/g.yaml",
            "kind: Job\nmetadata:\n  name: g\n  annotations: {helm.sh/hook: post-install, v: {{ .Chart.AppVersion | quote }}}\n",
        ),
        (
            "templates/h.yaml",
            "kind: ConfigMap\nmetadata: {name: h, has: {{ hasKey .Values \"late\" }}, keys: {{ keys .Values | sortAlpha | join \"-\" }}}\ndata: {sum: {{ include (print $.Template.BasePath \"/c.yaml\") . | sha256sum }}}\n",
        ),
        ("templates/NOTES.txt", "{{ .Values.name }} {{ len .Values.ports }}\n"),
        ("conf/one.txt", "1\n"),
        ("charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 0.1.0\n"),
        ("charts/db/values.yaml", "name: database\nsize: 5Gi\nuser: {name: u}\n"),
        (
            "charts/db/templates/s.yaml",
            "kind: StatefulSet\nmetadata: {name: {{ .Values.user.name }}, zone: {{ .Values.global.zone }}}\nspec: {size: {{ .Values.size }}, label: {{ include \"web.name\" . | quote }}}\n",
        ),
    ])
}

/// The error of a render that fails.
pub(super) fn refused(files: &FileSet, values: &Value) -> RenderError {
    let capabilities = Capabilities::default_for(Compat::V3);
    let world = World::new();
    let input = RenderInput::new(values, ReleaseInfo::install("rel", "ns"), &capabilities, &world);
    render(&Chart::load(files).unwrap(), &input).unwrap_err()
}

#[test]
fn only_what_a_change_reaches_runs_again() {
    let case = Case::new();
    let mut files = web();
    let mut values = json!({});
    let impure = 1;
    assert_eq!(case.same(&files, &values), 10);
    assert_eq!(case.same(&files, &values), impure);
    let mut edit = |path: &str, from: &str, to: &str| {
        let text = files.get_mut(path).unwrap();
        assert!(text.contains(from), "{path} has no {from}");
        *text = text.replace(from, to);
        files.clone()
    };
    assert_eq!(case.same(&edit("templates/a.yaml", "spec:", "spec: # x"), &values), 1 + impure);
    // The text of the one helper changes where it is included, here and in the subchart; the other moves down
    // only.
    let helper = edit("templates/_helpers.tpl", "trunc 5", "trunc 4");
    assert_eq!(case.same(&helper, &values), 2 + impure);
    assert_eq!(
        case.same(
            &edit("templates/_helpers.tpl", "{{- define \"web.name\"", "\n{{- define \"web.name\""),
            &values
        ),
        impure
    );
    // `c` reads files, `h` includes it.
    let files = edit("conf/one.txt", "1", "2");
    assert_eq!(case.same(&files, &values), 2 + impure);
    values["replicas"] = json!(2.0);
    assert_eq!(case.same(&files, &values), 1 + impure);
    values["db"] = json!({"user": {"name": "v"}});
    assert_eq!(case.same(&files, &values), 1 + impure);
    values["global"] = json!({"zone": "y"});
    assert_eq!(case.same(&files, &values), 2 + impure);
    values["late"] = json!(1.0);
    assert_eq!(case.same(&files, &values), 1 + impure);
}

#[test]
fn what_writes_to_the_values_is_seen_by_all() {
    let case = Case::new();
    let mut files = web();
    let impure = 1;
    assert_eq!(case.same(&files, &json!({})), 10);
    // `f` runs before `e` to `a` and the notes, and writes what `a` reads; what ran before it stays.
    let after = 7;
    assert_eq!(case.same(&files, &json!({"write": true})), after);
    // It writes the same again, so who comes after it sees the same again.
    let writer = 1;
    assert_eq!(case.same(&files, &json!({"write": true})), writer + impure);
    assert_eq!(case.same(&files, &json!({"write": true, "replicas": 3.0})), 1 + writer + impure);
    // `a` for the replicas that are as before, `b` and the notes for the ports.
    assert_eq!(case.same(&files, &json!({"write": true, "ports": []})), 3 + writer + impure);
    // A render that fails in between takes nothing away.
    let good = files.insert("templates/b.yaml".to_owned(), "{{ .Values.nope.nope }}".to_owned()).unwrap();
    let values = json!({"write": true, "ports": [], "late": {"a": {"b": 1.0}}, "image": {"c": {"d": 1.0}}});
    assert!(case.run(&load(&files).unwrap(), &values, 1, Compat::V3, false).0.is_err());
    files.insert("templates/b.yaml".to_owned(), good);
    assert_eq!(case.same(&files, &json!({"write": true, "ports": []})), writer + impure);
    case.same(&files, &json!({"write": false}));
    assert_eq!(case.same(&files, &json!({"write": false})), impure);
}

/// Istio's charts lay the user's values over a profile that a template reads, and put the result in place of
/// `.Values`.
#[test]
fn values_that_a_template_makes_are_compared_as_it_makes_them() {
    let case = Case::new();
    let mut files = web();
    let profile = "{{- $profile := .Files.Get \"conf/profile.yaml\" | fromYaml }}\n{{- $_ := set $ \"Values\" (mustMergeOverwrite (dict) $profile (deepCopy .Values)) }}\n{{- $_ := set .Values \"list\" (list .Values.image (dict \"a\" .Values.labels)) }}\n";
    files.insert("templates/zz.yaml".to_owned(), profile.to_owned());
    files.insert(
        "templates/i.yaml".to_owned(),
        "a: {{ (index .Values.list 1).a.a }} {{ .Values.image.tag }}\n".to_owned(),
    );
    files.insert("conf/profile.yaml".to_owned(), "replicas: 5\nmade: {up: here}\n".to_owned());
    let (writer, impure) = (1, 1);
    let all = case.same(&files, &json!({}));
    assert_eq!(case.same(&files, &json!({})), writer + impure);
    assert_eq!(case.same(&files, &json!({"replicas": 7.0})), 1 + writer + impure);
    assert_eq!(case.same(&files, &json!({"replicas": 7.0, "labels": {"a": "c"}})), 2 + writer + impure);
    let tag = json!({"replicas": 7.0, "labels": {"a": "c"}, "image": {"tag": "2"}});
    assert_eq!(case.same(&files, &tag), 2 + writer + impure);
    // Files are read by whoever likes; only the subchart's template ran before.
    files.insert("conf/profile.yaml".to_owned(), "replicas: 5\nmade: {up: there}\n".to_owned());
    assert_eq!(case.same(&files, &tag), all - 1);
}

#[test]
fn a_failed_render_leaves_the_memory_sound() {
    let case = Case::new();
    let mut files = web();
    case.same(&files, &json!({}));
    let good = files["templates/b.yaml"].clone();
    for bad in ["{{ .Values.nope.nope }}", "{{ if }}", "kind: [", "{{ fail \"no\" }}"] {
        files.insert("templates/b.yaml".to_owned(), bad.to_owned());
        let (refused, _) = case.run(&load(&files).unwrap(), &json!({"replicas": 3.0}), 1, Compat::V3, false);
        assert!(refused.is_err(), "{bad}");
        files.insert("templates/b.yaml".to_owned(), good.clone());
        case.same(&files, &json!({}));
    }
}

/// Large enough for other threads to parse templates and to read documents.
#[test]
fn a_large_chart_renders_and_fails_as_a_small_one() {
    let path = |at: usize| format!("templates/c{at:03}.yaml");
    let text = |at: usize| {
        let lines: String =
            (0..40).map(|line| format!("  key{line}: {at} and what stands beside it\n")).collect();
        format!("kind: ConfigMap\nmetadata: {{name: c{at}}}\ndata:\n  own: {{{{ .Values.name }}}}\n{lines}")
    };
    let mut files = texts(&[
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("values.yaml", "name: own\n"),
    ]);
    files.extend((0..150).map(|at| (path(at), text(at))));
    let case = Case::new();
    let run = |files: &Texts| case.run(&load(files).unwrap(), &json!({}), 1, Compat::V3, true).0;
    let document = |at: usize| {
        let made = text(at).replace("{{ .Values.name }}", "own");
        format!("---\n# Source: web/{}\n{}\n", path(at), made.trim_end())
    };
    assert!((0..150).map(document).map(|one| one.len()).sum::<usize>() > 4 * crate::spread::WORTH);
    assert!(run(&files).unwrap().0 == (0..150).map(document).collect::<String>());
    assert_eq!(case.same(&files, &json!({})), 150);
    assert_eq!(case.same(&files, &json!({})), 0);
    // Helm tells the mistake that it meets first: documents by path, templates from the last on.
    let broken = |what: &str, wanted: &str| {
        let mut files = files.clone();
        for at in [40, 90, 120] {
            files.insert(path(at), format!("{}{what}\n", text(at)));
        }
        let told = run(&files).unwrap_err();
        assert!(told.contains(wanted), "{what}: {told}");
    };
    broken("a: [", "YAML parse error on web/templates/c040.yaml");
    broken("{{ if }}", "parse error at (web/templates/c120.yaml:");
    broken("{{ fail \"no\" }}", "web/templates/c120.yaml:");
}

/// A chart's templates are parsed while its dependencies are decided: one that is left out may be broken, one
/// with another name is that name's, and what is broken is told as ever.
#[test]
fn templates_that_were_parsed_ahead_are_those_of_the_charts_that_take_part() {
    let long = "# a line\n".repeat(crate::spread::WORTH / 9 / 20 + 1);
    let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    let dependencies = "dependencies:\n- {name: extra, version: 1.0.0, condition: extra.enabled}\n- {name: db, version: 1.0.0, alias: store}\n";
    let mut files = texts(&[
        ("Chart.yaml", &format!("{}{dependencies}", chart("web"))),
        ("values.yaml", "extra: {enabled: false}\n"),
        ("charts/extra/Chart.yaml", &chart("extra")),
        ("charts/extra/templates/a.yaml", "{{ if }}"),
        ("charts/db/Chart.yaml", &chart("db")),
        (
            "charts/db/templates/a.yaml",
            &format!("{long}of: {{{{ .Chart.Name }}}} at {{{{ .Template.Name }}}}\n"),
        ),
    ]);
    files.extend((0..30).map(|at| (format!("templates/{at:02}.yaml"), format!("{long}n: {at}\n"))));
    let run =
        |files: &Texts, values: Value| Case::new().run(&load(files).unwrap(), &values, 1, Compat::V3, true).0;
    let made = run(&files, json!({})).unwrap().0;
    assert!(made.contains("of: store at web/charts/store/templates/a.yaml\n"), "{made}");
    assert!(made.contains("n: 29\n"), "{made}");
    let (chart, none, world) = (load(&files).unwrap(), json!({}), World::new());
    let capabilities = Capabilities::default_for(Compat::V3);
    let input = RenderInput::new(&none, ReleaseInfo::install("rel", "ns"), &capabilities, &world);
    let ahead = super::ahead::Ahead::beside(&chart, &input, || Ok::<_, ()>(chart.clone()), |chart| chart);
    let ahead = ahead.unwrap().1;
    let parsed =
        |file: &crate::chart::File| ahead.parsed(&format!("web/{}", file.name), &file.data).is_some();
    assert!(chart.templates.len() == 30 && chart.templates.iter().all(parsed));
    let told = run(&files, json!({"extra": {"enabled": true}})).unwrap_err();
    assert!(told.contains("parse error at (web/charts/extra/templates/a.yaml:1)"), "{told}");
    files.insert("templates/11.yaml".to_owned(), "{{ end }}".to_owned());
    let told = run(&files, json!({})).unwrap_err();
    assert!(told.contains("parse error at (web/templates/11.yaml:1)"), "{told}");
    files.insert("values.schema.json".to_owned(), r#"{"required": ["name"]}"#.to_owned());
    let told = run(&files, json!({})).unwrap_err();
    assert!(told.contains("missing property 'name'"), "{told}");
}

/// Numbers that repeat.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.roll(items.len())]
    }
}

const SNIPPETS: [&str; 28] = [
    "{{ .Values.name }}",
    "{{ .Values.image | toYaml | nindent 2 }}",
    "{{ range $k, $v := .Values.labels }}{{ $k }}={{ $v }} {{ end }}",
    "{{ include \"web.name\" . }}",
    "{{ include \"web.labels\" (dict \"Values\" .Values) | quote }}",
    "{{ with .Values.db }}{{ .size }}{{ end }}",
    "{{ .Values.missing | default \"none\" }}",
    "{{ tpl (toYaml .Values) . | sha256sum }}",
    "{{ .Files.Get \"conf/one.txt\" | trim }}",
    "{{ if hasKey .Values \"late\" }}late{{ end }}",
    "{{ randNumeric 3 }}",
    "{{ $_ := set .Values \"replicas\" 9 }}",
    "{{ $m := deepCopy .Values }}{{ $_ := set $m \"name\" \"copy\" }}{{ $m.name }}",
    "{{ $m := merge (dict) .Values.image }}{{ $m.tag }}",
    "{{ (index .Values.ports 0).port }}",
    "{{ $_ := set (index .Values.ports 0) \"port\" 7 }}",
    "{{ .Release.Revision }} {{ .Capabilities.KubeVersion }}",
    "{{ len .Values.labels }} {{ .Values.labels | empty }}",
    "{{ template \"web.name\" . }}",
    "{{ tpl \"{{ define \\\"web.name\\\" }}inner{{ end }}{{ include \\\"web.name\\\" . }}\" . }}",
    "{{ .Values.image.nope.deep }}",
    "{{ $_ := set . \"Values\" (mustMergeOverwrite (dict \"made\" (dict \"up\" 1)) .Values) }}",
    "{{ $_ := set .Values \"late\" (dict \"name\" .Values.name \"image\" .Values.image \"l\" (list .Values.image .Values.labels)) }}",
    "{{ with .Values.late }}{{ . | toJson }}{{ end }}",
    "{{ with .Values.late }}{{ range .l }}{{ .tag }}{{ .a }}{{ end }}{{ end }}",
    "{{ $_ := unset .Values \"labels\" }}",
    "{{ with .Values.late }}{{ if kindIs \"map\" . }}{{ $_ := set . \"name\" (print .name \"+\") }}{{ end }}{{ end }}",
    "{{ dig \"a\" \"b\" \"c\" (.Values.deep | default dict) }}",
];

fn random_value(dice: &mut Dice, depth: usize) -> Value {
    match dice.roll(if depth == 0 { 5 } else { 7 }) {
        0 => json!(null),
        1 => json!(dice.roll(3) == 0),
        2 => json!(dice.roll(4) as f64),
        3 => json!(dice.pick(&["x", "y", "{{ .Values.name }}", "1Gi"])),
        4 => json!([{"name": "a", "port": dice.roll(3) as f64}]),
        5 => json!({"a": random_value(dice, depth - 1), "tag": "t", "size": random_value(dice, depth - 1)}),
        _ => json!({}),
    }
}

pub(super) fn edit(dice: &mut Dice, files: &mut Texts, values: &mut Value, revision: &mut i64) {
    const KEYS: [&str; 13] = [
        "name", "replicas", "image", "ports", "labels", "extra", "global", "random", "write", "db", "late",
        "deep", "missing",
    ];
    let templates: Vec<String> = files.keys().filter(|path| path.contains("templates/")).cloned().collect();
    let template = templates[dice.roll(templates.len())].clone();
    match dice.roll(10) {
        0..=2 => {
            let text = files.get_mut(&template).unwrap();
            *text = format!("{}\n# {}\n", text.trim_end(), dice.pick(&SNIPPETS));
        }
        3 => {
            // Back to what it was at the start, if it was there.
            if let Some(text) = web().get(&template) {
                files.insert(template, text.clone());
            }
        }
        4 => {
            files.insert(
                format!("templates/n{}.yaml", dice.roll(3)),
                format!("kind: X\nx: {}\n", dice.pick(&SNIPPETS)),
            );
        }
        5 => {
            files.remove(&format!("templates/n{}.yaml", dice.roll(3)));
        }
        6 => {
            files.insert("conf/one.txt".to_owned(), dice.roll(3).to_string());
        }
        7 => *revision += 1,
        _ => {
            let key = KEYS[dice.roll(KEYS.len())];
            if dice.roll(4) == 0 {
                values.as_object_mut().unwrap().remove(key);
            } else {
                values[key] = random_value(dice, 2);
            }
        }
    }
}

#[test]
fn any_edit_gives_what_a_full_render_gives() {
    let (mut good, mut bad, mut kept) = (0, 0, 0);
    for seed in 1..=16 {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let compat = if seed % 2 == 0 { Compat::V4 } else { Compat::V3 };
        let (mut files, mut values, mut revision) = (web(), json!({}), 1);
        let case = Case::new();
        for step in 0..40 {
            if dice.roll(12) == 0 {
                (files, values) = (web(), json!({}));
            }
            edit(&mut dice, &mut files, &mut values, &mut revision);
            let Ok(chart) = load(&files) else { continue };
            let (got, executed) = case.run(&chart, &values, revision, compat, false);
            let (full, all) = case.run(&chart, &values, revision, compat, true);
            assert_eq!(got, full, "seed {seed}, step {step}\n{values}\n{files:#?}");
            match full {
                Ok(_) => good += 1,
                Err(_) => bad += 1,
            }
            kept += all - executed;
        }
    }
    assert!(good > 150 && bad > 15 && kept > 500, "{good} renders, {bad} refused, {kept} templates kept");
}
