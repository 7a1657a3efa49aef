"""What both operators are put through: a chart, what is done, and where they differ on purpose."""

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


def config(name, text="{}", guard=None):
    body = f"""apiVersion: v1
kind: ConfigMap
metadata:
  name: {{{{ .Release.Name }}}}-{name}
data:
  text: {text}
"""
    return f"{{{{ if {guard} }}}}\n{body}{{{{ end }}}}\n" if guard else body


def hook(event, data="a: b"):
    return f"""apiVersion: v1
kind: ConfigMap
metadata:
  name: {{{{ .Release.Name }}}}-{event.split(",")[0]}
  annotations:
    helm.sh/hook: {event}
data:
  {data}
"""


HISTORY = "opdev keeps ten revisions; the SDK's operator deletes all that are not deployed"
GUARD = "opdev's loop guard keeps the manifest after three upgrades that nobody asked for"
REWRITE = "a saved chart without a changed hook is written into the deployed revision (`reload: upgrade` is the other way)"
HOOK_SAVED = "the SDK's operator compares manifests and no hooks; opdev runs a saved hook, and says that production would not"
TWINS = "opdev refuses two templates of one object before anything is written, also as an upgrade; Helm's install fails half way"
CAUSE = "the SDK's operator writes a fixed text instead of the error; opdev writes the error"
RANDOM = "opdev draws the same random values for the same object, and says that the SDK's operator would upgrade in every reconcile"
LOOKUP = "opdev looks at the cluster before it upgrades, and says that the SDK's operator would upgrade in every reconcile"
SELECTOR = "without WATCH_NAMESPACE the SDK's selector does nothing; with it, what left the selector is not seen any more"
NAME = "opdev says it before Helm does, with the limit and the length"
LISTED = "Helm prints a list of errors, here with one; opdev prints the error and the step that failed"
FINALIZER = "opdev puts its finalizer on before it installs, so that nothing is ever orphaned"
TWICE = "one drift pass of the SDK's operator comes with the period only: see A14, its owner mapping misses charts without a namespace"

# name: templates, spec at first, steps, known differences by field.
SCENARIOS = {
    "install": dict(templates={"all": CONFIG, "notes": None}, steps=[]),
    "values": dict(templates={"all": CONFIG}, steps=[("patch", {"spec": {"greeting": "two"}})]),
    "values-back": dict(
        templates={"all": CONFIG},
        steps=[("patch", {"spec": {"greeting": "two"}}), ("patch", {"spec": {"greeting": None}})],
    ),
    "object-leaves": dict(
        templates={"all": CONFIG, "extra": config("extra", "x", ".Values.extra")},
        spec={"extra": True},
        steps=[("patch", {"spec": {"extra": False}})],
    ),
    "drift": dict(templates={"all": CONFIG}, steps=[("drift", "config", {"data": {"greeting": "drift", "more": "kept"}})]),
    "deleted-object": dict(templates={"all": CONFIG}, steps=[("remove", "config")]),
    "deleted": dict(templates={"all": CONFIG}, steps=[("delete",)]),
    "delete-hooks": dict(templates={"all": CONFIG, "pre": hook("pre-delete"), "post": hook("post-delete")}, steps=[("delete",)]),
    "is-install": dict(templates={"all": CONFIG, "once": config("once", "x", ".Release.IsInstall")}, steps=[]),
    "is-upgrade": dict(templates={"all": CONFIG, "later": config("later", "x", ".Release.IsUpgrade")}, steps=[]),
    "revision": dict(
        templates={"all": config("config", "revision {{ .Release.Revision }}")},
        steps=[],
        known={"revision": GUARD, "objects": GUARD, "manifest": GUARD},
    ),
    "random": dict(
        templates={"all": config("config", "{{ randAlphaNum 8 | quote }}")},
        steps=[],
        known={"revision": RANDOM, "objects": RANDOM, "manifest": RANDOM, "Deployed": RANDOM},
    ),
    "lookup": dict(
        templates={"all": config("config", '{{ (lookup "v1" "Namespace" "" "default").kind | default "none" }}')},
        steps=[],
        known={"revision": LOOKUP, "Deployed": LOOKUP},
    ),
    "hook-value": dict(
        templates={"all": CONFIG, "hook": hook("post-install,post-upgrade", "a: {{ .Values.hooked | default 1 | quote }}")},
        steps=[("patch", {"spec": {"hooked": 2}})],
    ),
    "saved-object": dict(
        templates={"all": CONFIG},
        steps=[("save", "all", CONFIG.replace('"hello"', '"saved"'))],
        known={"revision": REWRITE, "Deployed": REWRITE},
    ),
    "saved-hook": dict(
        templates={"all": CONFIG, "hook": hook("post-install,post-upgrade", "a: first")},
        steps=[("save", "hook", hook("post-install,post-upgrade", "a: second"))],
        known={"revision": HOOK_SAVED, "objects": HOOK_SAVED, "Deployed": HOOK_SAVED},
    ),
    "saved-both": dict(
        templates={"all": CONFIG, "hook": hook("post-install,post-upgrade", "a: first")},
        steps=[
            ("hold",),
            ("save", "hook", hook("post-install,post-upgrade", "a: second")),
            ("save", "all", CONFIG.replace('"hello"', '"saved"')),
        ],
        known={"revision": "two saves: opdev upgrades for the hook, and the second one finds no other hook"},
    ),
    "overrides": dict(
        templates={"all": config("config", '{{ printf "%v %v %v %v %v [%v]" .Values.a .Values.b .Values.c .Values.d .Values.e .Values.f | quote }}')},
        overrides="{a: false, b: 3, c: 1.50, d: 010, e: yes, f: null}",
        steps=[],
    ),
    "failed-install": dict(
        templates={"all": CONFIG, "service": SERVICE, "pre": hook("pre-delete"), "post": hook("post-delete")},
        spec={"bad": True},
        steps=[],
        known={"ReleaseFailed": LISTED, "finalizers": FINALIZER},
    ),
    "failed-install-mended": dict(
        templates={"all": CONFIG, "service": SERVICE}, spec={"bad": True}, steps=[("patch", {"spec": {"bad": None}})]
    ),
    "failed-upgrade": dict(
        templates={"all": CONFIG, "service": SERVICE, "pre": hook("pre-rollback"), "post": hook("post-rollback")},
        steps=[("patch", {"spec": {"bad": True, "greeting": "two"}})],
        known={"ReleaseFailed": CAUSE, "revision": "both try again with a growing pause"},
    ),
    "failed-upgrade-mended": dict(
        templates={"all": CONFIG, "service": SERVICE},
        steps=[("patch", {"spec": {"bad": True, "greeting": "two"}}), ("patch", {"spec": {"bad": None, "greeting": None}})],
        known={"revision": "both try again with a growing pause"},
    ),
    "twins": dict(
        templates={"all": CONFIG, "twin": CONFIG.replace("hello", "twin")},
        steps=[],
        known={"ReleaseFailed": TWINS, "finalizers": FINALIZER},
    ),
    "pending": dict(templates={"all": CONFIG}, steps=[("pending",), ("patch", {"spec": {"greeting": "two"}})], known={"revision": "opdev marks the pending revision as failed, then takes its number"}),
    "annotations": dict(
        templates={"all": CONFIG, "hook": hook("post-install")},
        annotations={"helm.sdk.operatorframework.io/install-disable-hooks": "true"},
        steps=[],
    ),
    "period": dict(
        templates={"all": CONFIG},
        annotations={"helm.sdk.operatorframework.io/reconcile-period": "soon"},
        steps=[],
        known={"finalizers": FINALIZER},
    ),
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
        known={"finalizers": FINALIZER},
    ),
    "schema": dict(
        templates={"all": CONFIG},
        schema='{"properties": {"greeting": {"type": "string"}}}',
        spec={"greeting": 3},
        steps=[],
        known={"finalizers": FINALIZER},
    ),
    "long-name": dict(templates={"all": CONFIG}, name="n" * 54, steps=[], known={"ReleaseFailed": NAME, "finalizers": FINALIZER}),
    "crds": dict(
        templates={"all": CONFIG},
        crds="apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: things.crds.test\nspec:\n  group: crds.test\n  scope: Namespaced\n  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema: {type: object}\n",
        steps=[],
    ),
    "notes": dict(templates={"all": CONFIG, "NOTES.txt": "note {{ .Values.greeting }}"}, spec={"greeting": "a"}, steps=[("patch", {"spec": {"greeting": "b"}})]),
}
