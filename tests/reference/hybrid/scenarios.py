"""What both operators are put through: charts with options, what is done, and where they differ on purpose.

The kind of a scenario is made of its name; the words Translated, Asked, Before, After, Throwing and Rendered in it give the
kind the Go function of scripts.go, and `script` is what opdev is given for it.
"""
import random
import string

CONFIG = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  greeting: {{ .Values.greeting | default "hello" | quote }}
"""

SERVICE = """apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}-service
spec:
  type: {{ if .Values.bad }}Nonsense{{ else }}ClusterIP{{ end }}
  ports:
  - port: 80
"""


def config(name, text="{}", guard=None, extra=""):
    body = f"""apiVersion: v1
kind: ConfigMap
metadata:
  name: {{{{ .Release.Name }}}}-{name}
{extra}data:
  text: {text}
"""
    return f"{{{{ if {guard} }}}}\n{body}{{{{ end }}}}\n" if guard else body


def hook(event, data="a: b", more=""):
    return f"""apiVersion: v1
kind: ConfigMap
metadata:
  name: {{{{ .Release.Name }}}}-{event.split(",")[0]}
  annotations:
    helm.sh/hook: {event}
{more}data:
  {data}
"""


PREFIX = "helm.sdk.operatorframework.io/"
TRANSLATED = """export function values(self) {
  if (self.spec.size < 0) throw new Error("size must not be negative");
  return { greeting: `size ${self.spec.size ?? 0}` };
}
"""
ASKED = "export function paused(self) { return self.spec.paused === true; }\n"
NOTE = """import { patch } from "opdev";
const note = (self, what) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: self.metadata.name + "-" + what } });
"""
BEFORE = NOTE + """export function before(self, { values }) {
  return { patches: [patch(note(self, "before"), { data: { text: String(values.greeting) } }, { create: true })] };
}
"""
AFTER = NOTE + """export function after(self, { release }) {
  return { patches: [patch(note(self, "after"), { data: { text: `revision ${release.revision}` } }, { create: true })] };
}
"""
THROWING = 'export function before() { throw new Error("no luck today"); }\n'
RENDERED = """export function render(objects) {
  return JSON.parse(JSON.stringify(objects).replaceAll("hello", "goodbye"));
}
"""

GROWS = "both try again with a growing pause"
RETRIES = {"revisions": GROWS, "rest": GROWS}
WORDS = "the words of an error are opdev's; the library passes on what the Kubernetes client printed"
RANDOM = "opdev draws the same random values for the same object, and says that an operator would upgrade in every reconcile"
GUARD = "opdev's loop guard keeps the manifest after three upgrades that nobody asked for"
REMADE = "an object that was deleted comes back without Helm's label and annotations in the library, with them in opdev"
UNOWNED = "Helm's ConfigMap driver knows no owner; opdev's records are owned unless `storageOwnerReference: false`"
PENDING = "a revision that somebody left pending is broken off for opdev; the library waits for ever"
TWINS = "opdev refuses two templates of one object before anything is written; Helm's install fails half way"
BAD = {"patch": {"spec": {"bad": True, "greeting": "two"}}}


def bad(**more):
    return ("patch", {"spec": {"bad": True, **more}})


def good(**more):
    return ("patch", {"spec": {"bad": False, **more}})


def say(greeting):
    return ("patch", {"spec": {"greeting": greeting}})


def note(**annotations):
    return ("patch", {"metadata": {"annotations": {PREFIX + name.replace("_", "-"): value for name, value in annotations.items()}}})


def annotated(**annotations):
    return {PREFIX + name.replace("_", "-"): value for name, value in annotations.items()}


# A record of this does not fit into one part.
NOISE = "noise: " + "".join(random.Random(1).choices(string.ascii_letters, k=9000)) + "\n"
CHUNKED = {"storage": "chunked", "chunkedSecrets": {"owner": "helm", "chunkSize": 2000}}
BOTH = {"all": CONFIG, "service": SERVICE}
HOOKED = {"all": CONFIG, "pre": hook("pre-install"), "up": hook("pre-upgrade"), "down": hook("pre-delete")}

# name: templates, spec at first, values, options, script, annotations, steps, known differences by field.
SCENARIOS = {
    "install": dict(templates={"all": CONFIG}, steps=[]),
    "values": dict(templates={"all": CONFIG}, steps=[say("two")]),
    "values-back": dict(templates={"all": CONFIG}, steps=[say("two"), say(None)]),
    "values-twice": dict(templates={"all": CONFIG}, steps=[say("two"), say("three")]),
    "defaults": dict(templates={"all": CONFIG}, values="greeting: hi\nother: {a: 1, b: [x]}\n", steps=[]),
    "defaults-null": dict(templates={"all": CONFIG}, values="greeting: hi\n", spec={"greeting": None}, steps=[]),
    "no-change": dict(templates={"all": CONFIG}, steps=[("patch", {"spec": {"unused": 1}})]),
    "object-leaves": dict(
        templates={"all": CONFIG, "extra": config("extra", "x", ".Values.extra")},
        spec={"extra": True},
        steps=[("patch", {"spec": {"extra": False}})],
    ),
    "object-comes": dict(
        templates={"all": CONFIG, "extra": config("extra", "x", ".Values.extra")},
        steps=[("patch", {"spec": {"extra": True}})],
    ),
    "drift": dict(templates={"all": CONFIG}, steps=[("drift", "config", {"data": {"greeting": "drift", "more": "kept"}})]),
    "deleted-object": dict(templates={"all": CONFIG}, steps=[("remove", "config")], known={"objects": REMADE}),
    "deleted": dict(templates={"all": CONFIG}, steps=[("delete",)]),
    "deleted-later": dict(templates={"all": CONFIG}, steps=[say("two"), ("delete",)]),
    "delete-hooks": dict(templates={"all": CONFIG, "pre": hook("pre-delete"), "post": hook("post-delete")}, steps=[("delete",)]),
    "install-hooks": dict(templates=HOOKED, steps=[say("two")]),
    "hook-deleted": dict(
        templates={"all": CONFIG, "pre": hook("pre-install", more="    helm.sh/hook-delete-policy: hook-succeeded\n")}, steps=[]
    ),
    "hook-value": dict(
        templates={"all": CONFIG, "hook": hook("post-install,post-upgrade", "a: {{ .Values.hooked | default 1 | quote }}")},
        steps=[("patch", {"spec": {"hooked": 2}})],
    ),
    "is-install": dict(templates={"all": CONFIG, "once": config("once", "x", ".Release.IsInstall")}, steps=[]),
    "revision": dict(
        templates={"all": config("config", "revision {{ .Release.Revision }}")},
        steps=[],
        known={"revisions": GUARD, "objects": GUARD, "manifest": GUARD, "rest": GUARD, "records": GUARD},
    ),
    "random": dict(
        templates={"all": config("config", "{{ randAlphaNum 8 | quote }}")},
        steps=[],
        known={"revisions": RANDOM, "objects": RANDOM, "manifest": RANDOM, "Deployed": RANDOM, "rest": RANDOM, "records": RANDOM},
    ),
    "lookup": dict(
        templates={"all": config("config", '{{ (lookup "v1" "Namespace" "" "default").kind | default "none" }}')}, steps=[]
    ),
    "notes": dict(
        templates={"all": CONFIG, "NOTES.txt": "note {{ .Values.greeting }}"}, spec={"greeting": "a"}, steps=[say("b")]
    ),
    "overrides": dict(
        templates={"all": config("config", '{{ printf "%v %v %v" (kindOf .Values.a) (kindOf .Values.b) (kindOf .Values.c) | quote }}')},
        overrides="{a: 'false', b: '3', c: text}",
        steps=[],
    ),
    "overrides-nested": dict(
        templates={"all": config("config", "{{ .Values.image | toJson | quote }}")},
        spec={"image": {"name": "web", "tag": "1"}},
        overrides="{image.tag: '2', image.list: '{a,b}'}",
        steps=[],
    ),
    "failed-install": dict(templates=BOTH, spec={"bad": True}, steps=[], known={**RETRIES, "Irreconcilable": WORDS, "ReleaseFailed": WORDS}),
    "failed-install-mended": dict(templates=BOTH, spec={"bad": True}, steps=[good()]),
    "failed-upgrade": dict(
        templates=BOTH,
        options={"maxReleaseHistory": 4},
        steps=[bad(greeting="two")],
        known={**RETRIES, "Irreconcilable": WORDS, "ReleaseFailed": WORDS, "records": GROWS, "manifest": GROWS, "Deployed": GROWS},
    ),
    "failed-upgrade-mended": dict(
        templates=BOTH, steps=[bad(greeting="two"), good(greeting="three")], known={"revisions": GROWS, "records": GROWS}
    ),
    "history-one": dict(templates={"all": CONFIG}, options={"maxReleaseHistory": 1}, steps=[say("two"), say("three")]),
    "history-two": dict(templates={"all": CONFIG}, options={"maxReleaseHistory": 2}, steps=[say("two"), say("three")]),
    "history-all": dict(
        templates={"all": CONFIG}, options={"maxReleaseHistory": 0}, steps=[say(str(at)) for at in range(3)]
    ),
    "no-rollback-install": dict(
        templates=BOTH,
        options={"failureRollbacks": False},
        spec={"bad": True},
        steps=[],
        known={**RETRIES, "Irreconcilable": WORDS, "ReleaseFailed": WORDS, "records": GROWS, "manifest": GROWS, "Deployed": GROWS},
    ),
    "no-rollback-install-mended": dict(
        templates=BOTH,
        options={"failureRollbacks": False},
        spec={"bad": True},
        steps=[good()],
        known={"revisions": GROWS, "records": GROWS},
    ),
    "no-rollback-upgrade-mended": dict(
        templates=BOTH,
        options={"failureRollbacks": False},
        steps=[bad(greeting="two"), good(greeting="three")],
        known={"revisions": GROWS, "records": GROWS},
    ),
    "quiet-install": dict(templates=HOOKED, annotations=annotated(install_disable_hooks="true"), steps=[say("two")]),
    "quiet-upgrade": dict(templates=HOOKED, annotations=annotated(upgrade_disable_hooks="T"), steps=[say("two")]),
    "quiet-uninstall": dict(templates=HOOKED, annotations=annotated(uninstall_disable_hooks="1"), steps=[("delete",)]),
    "quiet-nonsense": dict(templates=HOOKED, annotations=annotated(install_disable_hooks="maybe"), steps=[]),
    "described": dict(
        templates={"all": CONFIG},
        annotations=annotated(install_description="the first", upgrade_description="the next"),
        steps=[say("two")],
    ),
    "forced": dict(templates={"all": CONFIG}, annotations=annotated(upgrade_force="true"), steps=[say("two")]),
    "own-names": dict(
        templates=HOOKED,
        options={"annotations": {"install": [{"disable-hooks": "my.domain/quiet"}], "upgrade": [{"description": "my.domain/why"}]}},
        annotations={"my.domain/quiet": "true", "my.domain/why": "because", **annotated(upgrade_disable_hooks="true")},
        steps=[say("two")],
    ),
    "no-annotations": dict(
        templates=HOOKED, options={"annotations": {}}, annotations=annotated(install_disable_hooks="true"), steps=[]
    ),
    "pause": dict(
        templates={"all": CONFIG},
        options={"pauseAnnotation": "my.domain/pause"},
        annotations={"my.domain/pause": "true"},
        steps=[],
    ),
    "pause-later": dict(
        templates={"all": CONFIG},
        options={"pauseAnnotation": "my.domain/pause"},
        steps=[("patch", {"metadata": {"annotations": {"my.domain/pause": "true"}}}), say("two")],
    ),
    "pause-ends": dict(
        templates={"all": CONFIG},
        options={"pauseAnnotation": "my.domain/pause"},
        annotations={"my.domain/pause": "true"},
        steps=[("patch", {"metadata": {"annotations": {"my.domain/pause": None}}})],
    ),
    "pause-yes": dict(
        templates={"all": CONFIG},
        options={"pauseAnnotation": "my.domain/pause"},
        annotations={"my.domain/pause": "yes"},
        steps=[],
    ),
    "asked": dict(templates={"all": CONFIG}, script=ASKED, spec={"paused": True}, steps=[]),
    "asked-ends": dict(templates={"all": CONFIG}, script=ASKED, spec={"paused": True}, steps=[("patch", {"spec": {"paused": False}})]),
    "translated": dict(templates={"all": CONFIG}, script=TRANSLATED, spec={"size": 3}, steps=[("patch", {"spec": {"size": 4}})]),
    "translated-wrong": dict(
        templates={"all": CONFIG},
        script=TRANSLATED,
        spec={"size": 3},
        steps=[("patch", {"spec": {"size": -1}})],
    ),
    "translated-defaults": dict(
        templates={"all": CONFIG}, values="greeting: hi\nmore: 1\n", script=TRANSLATED, spec={"size": 1}, steps=[]
    ),
    "before": dict(templates={"all": CONFIG}, script=BEFORE, spec={"greeting": "one"}, steps=[say("two")]),
    "after": dict(templates={"all": CONFIG}, script=AFTER, steps=[say("two")]),
    "throwing": dict(templates={"all": CONFIG}, script=THROWING, steps=[say("two")]),
    "rendered": dict(templates={"all": CONFIG}, script=RENDERED, steps=[]),
    "rendered-upgrade": dict(templates={"all": CONFIG}, script=RENDERED, steps=[say("hello again")]),
    "config-maps": dict(
        templates={"all": CONFIG}, options={"storage": "configmap"}, steps=[say("two")], known={"records": UNOWNED}
    ),
    "config-maps-deleted": dict(templates={"all": CONFIG}, options={"storage": "configmap"}, steps=[("delete",)]),
    "chunked": dict(templates={"all": CONFIG}, values=NOISE, options=CHUNKED, steps=[say("two"), say("three")]),
    "chunked-small": dict(templates={"all": CONFIG}, options={"storage": "chunked", "chunkedSecrets": {"owner": "mine", "chunkSize": 100000}}, steps=[say("two")]),
    "chunked-history": dict(
        templates={"all": CONFIG}, values=NOISE, options={**CHUNKED, "maxReleaseHistory": 1}, steps=[say("two"), say("three")]
    ),
    "chunked-failed": dict(
        templates=BOTH,
        values=NOISE,
        options=CHUNKED,
        steps=[bad(greeting="two"), good(greeting="three")],
        known={"revisions": GROWS, "records": GROWS},
    ),
    "chunked-deleted": dict(templates={"all": CONFIG}, values=NOISE, options=CHUNKED, steps=[say("two"), ("delete",)]),
    "chunked-too-large": dict(
        templates={"all": CONFIG},
        values=NOISE,
        options={"storage": "chunked", "chunkedSecrets": {**CHUNKED["chunkedSecrets"], "maxWriteChunks": 1}},
        steps=[],
        known={"rest": GROWS},
    ),
    "memory": dict(templates={"all": CONFIG}, options={"storage": "memory"}, steps=[say("two")]),
    "no-owner": dict(templates={"all": CONFIG}, options={"storageOwnerReference": False}, steps=[say("two")]),
    "keep": dict(
        templates={"all": CONFIG.replace("-config\n", "-config\n  annotations:\n    helm.sh/resource-policy: keep\n")},
        steps=[("delete",)],
    ),
    "cluster-role": dict(
        templates={"all": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {{ .Release.Namespace }}-{{ .Release.Name }}\nrules: []\n"},
        steps=[("delete",)],
    ),
    "foreign": dict(
        templates={"all": CONFIG},
        before={"config": {"data": {"mine": "yes"}}},
        steps=[],
        known={"Irreconcilable": WORDS, "ReleaseFailed": WORDS, "rest": GROWS},
    ),
    "schema": dict(
        templates={"all": CONFIG},
        schema='{"properties": {"greeting": {"type": "string"}}}',
        spec={"greeting": 3},
        steps=[],
        known={"Irreconcilable": WORDS, "ReleaseFailed": WORDS},
    ),
    "schema-upgrade": dict(
        templates={"all": CONFIG},
        schema='{"properties": {"greeting": {"type": "string"}}}',
        steps=[("patch", {"spec": {"greeting": 3}})],
        known={"Irreconcilable": WORDS},
    ),
    "template-error": dict(
        templates={"all": CONFIG, "broken": config("broken", "{{ required \"a size is required\" .Values.size }}", ".Values.strict")},
        steps=[("patch", {"spec": {"strict": True}})],
        known={"Irreconcilable": WORDS},
    ),
    "template-error-mended": dict(
        templates={"all": CONFIG, "broken": config("broken", "{{ required \"a size is required\" .Values.size }}", ".Values.strict")},
        steps=[("patch", {"spec": {"strict": True}}), ("patch", {"spec": {"size": "big"}})],
    ),
    # A number is no text for a ConfigMap: rendered at last, and then refused by the server.
    "template-error-refused": dict(
        templates={"all": CONFIG, "broken": config("broken", "{{ required \"a size is required\" .Values.size }}", ".Values.strict")},
        steps=[("patch", {"spec": {"strict": True}}), ("patch", {"spec": {"size": 1}})],
        known={**RETRIES, "Irreconcilable": WORDS, "ReleaseFailed": WORDS, "records": GROWS},
    ),
    "twins": dict(
        templates={"all": CONFIG, "twin": CONFIG.replace("hello", "twin")},
        steps=[],
        known={"Irreconcilable": TWINS, "ReleaseFailed": TWINS, "rest": TWINS},
    ),
    "pending": dict(
        templates={"all": CONFIG},
        steps=[("pending",), say("two")],
        known={name: PENDING for name in ("revisions", "records", "Irreconcilable", "Deployed", "ReleaseFailed", "manifest", "objects", "rest")},
    ),
    "no-dependents": dict(templates={"all": CONFIG}, watch={"watchDependentResources": False}, steps=[("remove", "config")], known={"objects": REMADE}),
    "list": dict(
        templates={"all": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: '{{ .Release.Name }}-one'}\n  data: {a: b}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: '{{ .Release.Name }}-two'}\n  data: {a: b}\n"},
        steps=[],
    ),
    "crds": dict(
        templates={"all": CONFIG},
        crds="apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: things.crds.test\nspec:\n  group: crds.test\n  scope: Namespaced\n  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema: {type: object}\n",
        steps=[],
    ),
}
