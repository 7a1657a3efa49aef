//! Every marker that is known, where it may stand, what its arguments are and since when: the ones of CRDs,
//! of RBAC and of webhooks with their arguments, those of other generators by name only. Applies nothing.

use super::argument::Kind;
use crate::go::profile::Level;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The kind of declaration that a marker describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Package,
    Type,
    Field,
}

impl Target {
    /// In words, with an article.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Target::Package => "a package",
            Target::Type => "a type",
            Target::Field => "a field",
        }
    }
}

/// Arguments of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// None at all.
    None,
    /// An argument without a name.
    One(Kind),
    /// An argument without a name that may be left out.
    MaybeOne(Kind),
    /// JSON text.
    Json,
    /// Some with names; `true` for those that may be left out.
    Named(&'static [(&'static str, Kind, bool)]),
    /// Another generator's matter.
    Foreign,
}

/// One marker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) on: &'static [Target],
    pub(crate) since: Level,
    pub(crate) arguments: Arguments,
}

const P: &[Target] = &[Target::Package];
const T: &[Target] = &[Target::Type];
const F: &[Target] = &[Target::Field];
const FT: &[Target] = &[Target::Field, Target::Type];
const PT: &[Target] = &[Target::Package, Target::Type];
const PF: &[Target] = &[Target::Package, Target::Field];
const ANYWHERE: &[Target] = &[Target::Package, Target::Type, Target::Field];
const OLD: Level = Level::V0_14;

const RULE: &[(&str, Kind, bool)] = &[
    ("rule", Kind::Text, false),
    ("message", Kind::Text, true),
    ("messageExpression", Kind::Text, true),
    ("reason", Kind::Text, true),
    ("fieldPath", Kind::Text, true),
    ("optionalOldSelf", Kind::Bool, true),
];
const SCALE: &[(&str, Kind, bool)] =
    &[("specpath", Kind::Text, false), ("statuspath", Kind::Text, false), ("selectorpath", Kind::Text, true)];
const COLUMN: &[(&str, Kind, bool)] = &[
    ("name", Kind::Text, false),
    ("type", Kind::Text, false),
    ("JSONPath", Kind::Text, false),
    ("description", Kind::Text, true),
    ("format", Kind::Text, true),
    ("priority", Kind::Int, true),
];
const RESOURCE: &[(&str, Kind, bool)] = &[
    ("path", Kind::Text, true),
    ("shortName", Kind::Texts, true),
    ("categories", Kind::Texts, true),
    ("singular", Kind::Text, true),
    ("scope", Kind::Text, true),
];
const METADATA: &[(&str, Kind, bool)] = &[("annotations", Kind::Texts, true), ("labels", Kind::Texts, true)];
const DOCS: &[(&str, Kind, bool)] = &[("url", Kind::Text, false), ("description", Kind::Text, true)];
const RBAC: &[(&str, Kind, bool)] = &[
    ("groups", Kind::Texts, true),
    ("resources", Kind::Texts, true),
    ("resourceNames", Kind::Texts, true),
    ("verbs", Kind::Texts, false),
    ("urls", Kind::Texts, true),
    ("namespace", Kind::Text, true),
    ("roleName", Kind::Text, true),
];
const WEBHOOK: &[(&str, Kind, bool)] = &[
    ("mutating", Kind::Bool, false),
    ("failurePolicy", Kind::Text, false),
    ("matchPolicy", Kind::Text, true),
    ("sideEffects", Kind::Text, true),
    ("timeoutSeconds", Kind::Int, true),
    ("groups", Kind::Texts, false),
    ("resources", Kind::Texts, false),
    ("verbs", Kind::Texts, false),
    ("versions", Kind::Texts, false),
    ("name", Kind::Text, false),
    ("serviceName", Kind::Text, true),
    ("serviceNamespace", Kind::Text, true),
    ("path", Kind::Text, true),
    ("servicePort", Kind::Int, true),
    ("webhookVersions", Kind::Texts, true),
    ("admissionReviewVersions", Kind::Texts, false),
    ("reinvocationPolicy", Kind::Text, true),
    ("url", Kind::Text, true),
];
const CONFIGURATION: &[(&str, Kind, bool)] = &[("mutating", Kind::Bool, false), ("name", Kind::Text, true)];

/// Validations of fields and types, each known for items too.
const VALIDATIONS: &[(&str, &str, Level, Arguments)] = &[
    v("Maximum", "items:Maximum", Arguments::One(Kind::Number)),
    v("Minimum", "items:Minimum", Arguments::One(Kind::Number)),
    v("ExclusiveMaximum", "items:ExclusiveMaximum", Arguments::One(Kind::Bool)),
    v("ExclusiveMinimum", "items:ExclusiveMinimum", Arguments::One(Kind::Bool)),
    v("MultipleOf", "items:MultipleOf", Arguments::One(Kind::Number)),
    v("MinProperties", "items:MinProperties", Arguments::One(Kind::Int)),
    v("MaxProperties", "items:MaxProperties", Arguments::One(Kind::Int)),
    v("MaxLength", "items:MaxLength", Arguments::One(Kind::Int)),
    v("MinLength", "items:MinLength", Arguments::One(Kind::Int)),
    v("Pattern", "items:Pattern", Arguments::One(Kind::Text)),
    v("MaxItems", "items:MaxItems", Arguments::One(Kind::Int)),
    v("MinItems", "items:MinItems", Arguments::One(Kind::Int)),
    v("UniqueItems", "items:UniqueItems", Arguments::One(Kind::Bool)),
    v("Enum", "items:Enum", Arguments::One(Kind::Anys)),
    v("Format", "items:Format", Arguments::One(Kind::Text)),
    v("Type", "items:Type", Arguments::One(Kind::Text)),
    v("XPreserveUnknownFields", "items:XPreserveUnknownFields", Arguments::None),
    v("XEmbeddedResource", "items:XEmbeddedResource", Arguments::None),
    v("XIntOrString", "items:XIntOrString", Arguments::None),
    v("XValidation", "items:XValidation", Arguments::Named(RULE)),
];

const fn v(
    name: &'static str,
    items: &'static str,
    arguments: Arguments,
) -> (&'static str, &'static str, Level, Arguments) {
    (name, items, OLD, arguments)
}

const fn d(name: &'static str, on: &'static [Target], since: Level, arguments: Arguments) -> Definition {
    Definition { name, on, since, arguments }
}

const OTHERS: &[Definition] = &[
    d("kubebuilder:validation:Required", PF, OLD, Arguments::None),
    d("kubebuilder:validation:Optional", PF, OLD, Arguments::None),
    d("required", F, Level::V0_16, Arguments::None),
    d("optional", F, OLD, Arguments::None),
    d("k8s:required", F, Level::V0_20, Arguments::None),
    d("k8s:optional", F, Level::V0_20, Arguments::None),
    d("nullable", F, OLD, Arguments::None),
    d("kubebuilder:default", F, OLD, Arguments::One(Kind::Any)),
    d("default", F, Level::V0_16, Arguments::Json),
    d("kubebuilder:example", F, OLD, Arguments::One(Kind::Any)),
    d("kubebuilder:validation:EmbeddedResource", F, OLD, Arguments::None),
    d("kubebuilder:validation:Schemaless", F, OLD, Arguments::None),
    d("k8s:immutable", F, Level::V0_21, Arguments::None),
    d("kubebuilder:validation:AtMostOneOf", T, Level::V0_19, Arguments::One(Kind::Texts)),
    d("kubebuilder:validation:ExactlyOneOf", T, Level::V0_19, Arguments::One(Kind::Texts)),
    d("kubebuilder:validation:AtLeastOneOf", T, Level::V0_20, Arguments::One(Kind::Texts)),
    d("k8s:enum", FT, Level::V0_21, Arguments::None),
    d("kubebuilder:pruning:PreserveUnknownFields", FT, OLD, Arguments::None),
    d("kubebuilder:title", FT, Level::V0_18, Arguments::One(Kind::Any)),
    d("kubebuilder:externalDocs", FT, Level::V0_21, Arguments::Named(DOCS)),
    d("listType", FT, OLD, Arguments::One(Kind::Text)),
    d("listMapKey", FT, OLD, Arguments::One(Kind::Text)),
    d("mapType", FT, OLD, Arguments::One(Kind::Text)),
    d("structType", FT, OLD, Arguments::One(Kind::Text)),
    d("k8s:listType", FT, Level::V0_22, Arguments::One(Kind::Text)),
    d("k8s:listMapKey", FT, Level::V0_22, Arguments::One(Kind::Text)),
    d("k8s:maxItems", F, Level::V0_23, Arguments::One(Kind::Int)),
    d("k8s:minimum", F, Level::V0_23, Arguments::One(Kind::Number)),
    d("k8s:maximum", F, Level::V0_23, Arguments::One(Kind::Number)),
    d("kubebuilder:subresource:status", T, OLD, Arguments::None),
    d("kubebuilder:subresource:scale", T, OLD, Arguments::Named(SCALE)),
    d("kubebuilder:printcolumn", T, OLD, Arguments::Named(COLUMN)),
    d("kubebuilder:resource", T, OLD, Arguments::Named(RESOURCE)),
    d("kubebuilder:storageversion", T, OLD, Arguments::None),
    d("kubebuilder:skipversion", T, OLD, Arguments::None),
    d("kubebuilder:unservedversion", T, OLD, Arguments::None),
    d("kubebuilder:deprecatedversion", T, OLD, Arguments::Named(&[("warning", Kind::Text, true)])),
    d("kubebuilder:metadata", T, OLD, Arguments::Named(METADATA)),
    d("kubebuilder:selectablefield", T, Level::V0_16, Arguments::Named(&[("JSONPath", Kind::Text, false)])),
    d("groupName", P, OLD, Arguments::MaybeOne(Kind::Text)),
    d("versionName", P, OLD, Arguments::One(Kind::Text)),
    d("kubebuilder:skip", P, OLD, Arguments::None),
    d("kubebuilder:rbac", P, OLD, Arguments::Named(RBAC)),
    d("kubebuilder:webhook", P, OLD, Arguments::Named(WEBHOOK)),
    d("kubebuilder:webhookconfiguration", P, OLD, Arguments::Named(CONFIGURATION)),
    // Markers of other generators: known, and without effect on a CRD.
    d("kubebuilder:object:root", T, OLD, Arguments::Foreign),
    d("kubebuilder:object:generate", PT, OLD, Arguments::Foreign),
    d("k8s:deepcopy-gen", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:deepcopy-gen:interfaces", T, OLD, Arguments::Foreign),
    d("k8s:deepcopy-gen:nonpointer-interfaces", T, OLD, Arguments::Foreign),
    d("k8s:openapi-gen", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:openapi-model-package", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:conversion-gen", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:conversion-gen-external-types", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:conversion-fn", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:defaulter-gen", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:defaulter-gen-input", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:protobuf-gen", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:prerelease-lifecycle-gen", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:prerelease-lifecycle-gen:introduced", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:prerelease-lifecycle-gen:deprecated", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:prerelease-lifecycle-gen:removed", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:prerelease-lifecycle-gen:replacement", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:validation-gen", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:validation-gen-input", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:register-gen", ANYWHERE, OLD, Arguments::Foreign),
    d("k8s:applyconfiguration-gen", ANYWHERE, OLD, Arguments::Foreign),
    d("kubebuilder:ac:generate", PT, OLD, Arguments::Foreign),
    d("kubebuilder:ac:output:package", P, OLD, Arguments::Foreign),
    d("kubebuilder:scaffold", ANYWHERE, OLD, Arguments::Foreign),
    d("kubebuilder:docs-gen", ANYWHERE, OLD, Arguments::Foreign),
    d("kubebuilder:doc", ANYWHERE, OLD, Arguments::Foreign),
];

/// Tags of declarative validation that no release of controller-gen turns into a schema.
pub(crate) const DECLARATIVE: &[&str] = &[
    "k8s:minLength",
    "k8s:maxLength",
    "k8s:maxBytes",
    "k8s:minItems",
    "k8s:maxProperties",
    "k8s:format",
    "k8s:forbidden",
    "k8s:eachKey",
    "k8s:eachVal",
    "k8s:subfield",
    "k8s:item",
    "k8s:unionMember",
    "k8s:unionDiscriminator",
    "k8s:zeroOrOneOfMember",
    "k8s:neq",
    "k8s:ifEnabled",
    "k8s:ifDisabled",
    "k8s:isSubresource",
    "k8s:supportsSubresource",
    "k8s:opaqueType",
    "k8s:unique",
    "k8s:uniqueItems",
    "k8s:customUnique",
    "k8s:update",
    "k8s:maxIncrement",
    "k8s:enumExclude",
    "k8s:validateError",
    "k8s:alpha",
    "k8s:beta",
    "k8s:declarativeValidationNative",
];

/// All definitions by name.
pub(crate) fn all() -> &'static HashMap<String, Definition> {
    static ALL: OnceLock<HashMap<String, Definition>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all: HashMap<String, Definition> =
            OTHERS.iter().map(|definition| (definition.name.to_owned(), *definition)).collect();
        for (name, items, since, arguments) in VALIDATIONS {
            for (name, since) in [(*name, *since), (*items, Level::V0_15)] {
                let full = format!("kubebuilder:validation:{name}");
                all.insert(full, Definition { name, on: FT, since, arguments: *arguments });
            }
        }
        all
    })
}
