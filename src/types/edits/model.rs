//! Made-up API types: a tree of structs with markers, as Go text, and edits of it with what each does to the
//! schema.

use serde_json::{Map, Value, json};
use std::fmt;

/// Numbers that are the same in each run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A field's type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Text,
    Whole,
    Truth,
    List(Box<Kind>),
    Map(Box<Kind>),
    Struct(Vec<Field>),
}

/// A field with its markers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    kind: Kind,
    required: bool,
    words: String,
    values: Vec<String>,
    least: Option<i64>,
    most: Option<i64>,
}

/// A kind's spec.
#[derive(Clone, Debug)]
pub(super) struct Model {
    fields: Vec<Field>,
    /// Lines that mean nothing, and fields in another order.
    noise: bool,
}

/// An edit of one field, which is named by its path from the spec.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    Nothing,
    Describe { at: Vec<String> },
    Remove { at: Vec<String> },
    Rename { at: Vec<String>, to: String },
    Retype { at: Vec<String>, to: Kind },
    Require { at: Vec<String> },
    Allow { at: Vec<String> },
    Add { at: Vec<String>, field: Field, required: bool },
    Tighten { at: Vec<String>, how: Limit },
    Relax { at: Vec<String>, how: Limit },
}

/// A limit that is new; relaxing takes it away from a field that has it.
#[derive(Clone, Debug)]
pub(super) enum Limit {
    Values(Vec<String>),
    Least(Option<i64>),
    Most(Option<i64>),
}

const WORDS: [&str; 12] = [
    "size", "image", "replicas", "paused", "mode", "port", "labels", "hosts", "backup", "limit", "window",
    "target",
];

impl Model {
    pub(super) fn random(random: &mut Random) -> Model {
        Model { fields: fields(random, 3), noise: false }
    }

    pub(super) fn edited(&self, edit: &Edit) -> Model {
        let mut model = self.clone();
        match edit {
            Edit::Nothing => model.noise = true,
            Edit::Describe { at } => {
                model.field(at).words = "Says something else: now.\nOn two lines.".to_owned();
            }
            Edit::Remove { at } => {
                let name = at.last().unwrap().clone();
                model.siblings(at).retain(|field| field.name != name);
            }
            Edit::Rename { at, to } => to.clone_into(&mut model.field(at).name),
            Edit::Retype { at, to } => {
                let field = model.field(at);
                *field =
                    Field { kind: to.clone(), values: Vec::new(), least: None, most: None, ..field.clone() };
            }
            Edit::Require { at } => model.field(at).required = true,
            Edit::Allow { at } => model.field(at).required = false,
            Edit::Add { at, field, .. } => model.siblings(at).push(field.clone()),
            Edit::Tighten { at, how } | Edit::Relax { at, how } => match how {
                Limit::Values(values) => values.clone_into(&mut model.field(at).values),
                Limit::Least(least) => model.field(at).least = *least,
                Limit::Most(most) => model.field(at).most = *most,
            },
        }
        model
    }

    /// The fields beside the one at a way's end.
    fn siblings(&mut self, at: &[String]) -> &mut Vec<Field> {
        let mut fields = &mut self.fields;
        for name in &at[..at.len() - 1] {
            let field = fields.iter_mut().find(|field| field.name == *name).unwrap();
            fields = inner(&mut field.kind).unwrap();
        }
        fields
    }

    fn field(&mut self, at: &[String]) -> &mut Field {
        let name = at.last().unwrap();
        self.siblings(at).iter_mut().find(|field| field.name == *name).unwrap()
    }

    /// Ways to all fields.
    fn ways(&self) -> Vec<(Vec<String>, &Field)> {
        fn walk<'m>(fields: &'m [Field], way: &[String], found: &mut Vec<(Vec<String>, &'m Field)>) {
            for field in fields {
                let way: Vec<String> = way.iter().chain([&field.name]).cloned().collect();
                if let Some(fields) = inner_of(&field.kind) {
                    walk(fields, &way, found);
                }
                found.push((way, field));
            }
        }
        let mut found = Vec::new();
        walk(&self.fields, &[], &mut found);
        found
    }
}

fn inner(kind: &mut Kind) -> Option<&mut Vec<Field>> {
    match kind {
        Kind::List(kind) | Kind::Map(kind) => inner(kind),
        Kind::Struct(fields) => Some(fields),
        Kind::Text | Kind::Whole | Kind::Truth => None,
    }
}

fn inner_of(kind: &Kind) -> Option<&Vec<Field>> {
    match kind {
        Kind::List(kind) | Kind::Map(kind) => inner_of(kind),
        Kind::Struct(fields) => Some(fields),
        Kind::Text | Kind::Whole | Kind::Truth => None,
    }
}

fn fields(random: &mut Random, depth: usize) -> Vec<Field> {
    let mut names: Vec<&str> = WORDS.to_vec();
    (0..2 + random.below(5))
        .map(|_| {
            let name = names.swap_remove(random.below(names.len()));
            field(random, name, depth)
        })
        .collect()
}

fn field(random: &mut Random, name: &str, depth: usize) -> Field {
    let kind = kind(random, depth);
    let mut field = Field {
        name: name.to_owned(),
        required: random.chance(40),
        words: if random.chance(80) { format!("{name} is what it is called.") } else { String::new() },
        values: Vec::new(),
        least: None,
        most: None,
        kind,
    };
    match &field.kind {
        Kind::Text if random.chance(50) => {
            field.values = ["Always", "Never", "Sometimes", "Maybe"][..2 + random.below(3)]
                .iter()
                .map(|one| (*one).to_owned())
                .collect();
        }
        Kind::Whole => {
            field.least = random.chance(50).then(|| random.below(5) as i64 - 2);
            field.most = random.chance(50).then(|| 100 + random.below(50) as i64);
        }
        Kind::Text | Kind::Truth | Kind::List(_) | Kind::Map(_) | Kind::Struct(_) => {}
    }
    field
}

fn kind(random: &mut Random, depth: usize) -> Kind {
    match random.below(if depth == 0 { 5 } else { 9 }) {
        0 | 1 => Kind::Text,
        2 | 3 => Kind::Whole,
        4 => Kind::Truth,
        5 => Kind::List(Box::new(kind(random, depth - 1))),
        6 => Kind::Map(Box::new(kind(random, depth - 1))),
        _ => Kind::Struct(fields(random, depth - 1)),
    }
}

impl Edit {
    /// An edit that fits; tightening only where there is something to tighten.
    pub(super) fn random(model: &Model, random: &mut Random) -> Edit {
        let ways = model.ways();
        loop {
            let (at, field) = &ways[random.below(ways.len())];
            let at = at.clone();
            let edit = match random.below(10) {
                0 => Some(Edit::Nothing),
                1 => Some(Edit::Describe { at }),
                2 => Some(Edit::Remove { at }),
                3 => Some(Edit::Rename { to: format!("{}Other", field.name), at }),
                4 => Some(Edit::Retype {
                    at,
                    to: if field.kind == Kind::Truth { Kind::Whole } else { Kind::Truth },
                }),
                5 => (!field.required).then_some(Edit::Require { at }),
                6 => field.required.then_some(Edit::Allow { at }),
                7 => {
                    let required = random.chance(50);
                    let field = Field { required, ..self::field(random, "brandNew", 1) };
                    let at = at[..at.len() - 1].iter().cloned().chain(["brandNew".to_owned()]).collect();
                    Some(Edit::Add { at, field, required })
                }
                8 => tighter(field, random).map(|how| Edit::Tighten { at, how }),
                _ => looser(field, random).map(|how| Edit::Relax { at, how }),
            };
            if let Some(edit) = edit {
                return edit;
            }
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Edit::Nothing => "nothing",
            Edit::Describe { .. } => "describe",
            Edit::Remove { .. } => "remove",
            Edit::Rename { .. } => "rename",
            Edit::Retype { .. } => "retype",
            Edit::Require { .. } => "require",
            Edit::Allow { .. } => "allow",
            Edit::Add { .. } => "add",
            Edit::Tighten { .. } => "tighten",
            Edit::Relax { .. } => "relax",
        }
    }

    /// Does to the spec's schema what the edit does to the type.
    pub(super) fn expect(&self, spec: &mut Value) {
        match self {
            Edit::Nothing => {}
            Edit::Describe { at } => {
                property(spec, at)["description"] = json!("Says something else: now.\nOn two lines.");
            }
            Edit::Remove { at } => {
                let (parent, name) = parent(spec, at);
                remove(parent, name);
            }
            Edit::Rename { at, to } => {
                let (parent, name) = parent(spec, at);
                let required = is_required(parent, name);
                let schema = remove(parent, name);
                add(parent, to, schema, required);
            }
            Edit::Retype { at, to } => {
                let description = property(spec, at).get("description").cloned();
                let mut schema = schema(to);
                if let Some(description) = description {
                    schema["description"] = description;
                }
                *property(spec, at) = schema;
            }
            Edit::Require { at } => {
                let (parent, name) = parent(spec, at);
                require(parent, name);
            }
            Edit::Allow { at } => {
                let (parent, name) = parent(spec, at);
                release(parent, name);
            }
            Edit::Add { at, field, required } => {
                let (parent, name) = parent(spec, at);
                add(parent, name, field_schema(field), *required);
            }
            Edit::Tighten { at, how } | Edit::Relax { at, how } => {
                let (key, value) = match how {
                    Limit::Values(values) => ("enum", (!values.is_empty()).then(|| json!(values))),
                    Limit::Least(least) => ("minimum", least.map(|value| json!(value))),
                    Limit::Most(most) => ("maximum", most.map(|value| json!(value))),
                };
                let schema = property(spec, at).as_object_mut().unwrap();
                match value {
                    Some(value) => schema.insert(key.to_owned(), value),
                    None => schema.remove(key),
                };
            }
        }
    }
}

fn tighter(field: &Field, random: &mut Random) -> Option<Limit> {
    match &field.kind {
        Kind::Text if field.values.is_empty() => Some(Limit::Values(vec!["Always".to_owned()])),
        Kind::Text => Some(Limit::Values(field.values[1..].to_vec())).filter(|_| field.values.len() > 1),
        Kind::Whole if random.chance(50) => {
            Some(Limit::Least(Some(field.least.map_or(3, |least| least + 1))))
        }
        Kind::Whole => Some(Limit::Most(Some(field.most.map_or(90, |most| most - 1)))),
        Kind::Truth | Kind::List(_) | Kind::Map(_) | Kind::Struct(_) => None,
    }
}

fn looser(field: &Field, random: &mut Random) -> Option<Limit> {
    let more = random.chance(50);
    match &field.kind {
        Kind::Text if field.values.is_empty() => None,
        Kind::Text if more => Some(Limit::Values([field.values.as_slice(), &["More".to_owned()]].concat())),
        Kind::Text => Some(Limit::Values(Vec::new())),
        Kind::Whole if field.least.is_some() => {
            Some(Limit::Least(field.least.map(|least| least - 1).filter(|_| more)))
        }
        Kind::Whole if field.most.is_some() => {
            Some(Limit::Most(field.most.map(|most| most + 1).filter(|_| more)))
        }
        Kind::Whole | Kind::Truth | Kind::List(_) | Kind::Map(_) | Kind::Struct(_) => None,
    }
}

/// The object a way leads through, below lists and maps.
fn step(mut schema: &mut Value) -> &mut Value {
    loop {
        if schema.get("items").is_some() {
            schema = &mut schema["items"];
        } else if schema.get("additionalProperties").is_some() {
            schema = &mut schema["additionalProperties"];
        } else {
            return schema;
        }
    }
}

fn parent<'s, 'n>(spec: &'s mut Value, at: &'n [String]) -> (&'s mut Value, &'n str) {
    let (name, way) = at.split_last().unwrap();
    let mut schema = spec;
    for name in way {
        schema = step(&mut schema["properties"][name.as_str()]);
    }
    (schema, name)
}

fn property<'s>(spec: &'s mut Value, at: &[String]) -> &'s mut Value {
    let (parent, name) = parent(spec, at);
    &mut parent["properties"][name]
}

fn is_required(parent: &Value, name: &str) -> bool {
    parent.get("required").and_then(Value::as_array).is_some_and(|names| names.contains(&json!(name)))
}

fn remove(parent: &mut Value, name: &str) -> Value {
    let properties = parent["properties"].as_object_mut().unwrap();
    let schema = properties.remove(name).unwrap();
    if properties.is_empty() {
        parent.as_object_mut().unwrap().remove("properties");
    }
    release(parent, name);
    schema
}

fn add(parent: &mut Value, name: &str, schema: Value, required: bool) {
    let object = parent.as_object_mut().unwrap();
    let properties = object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    properties[name] = schema;
    if required {
        require(parent, name);
    }
}

fn require(parent: &mut Value, name: &str) {
    let object = parent.as_object_mut().unwrap();
    let names = object.entry("required").or_insert_with(|| json!([])).as_array_mut().unwrap();
    names.push(json!(name));
    names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
}

fn release(parent: &mut Value, name: &str) {
    let object = parent.as_object_mut().unwrap();
    if let Some(names) = object.get_mut("required").and_then(Value::as_array_mut) {
        names.retain(|one| one != name);
        if names.is_empty() {
            object.remove("required");
        }
    }
}

fn schema(kind: &Kind) -> Value {
    match kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Whole => json!({"type": "integer", "format": "int32"}),
        Kind::Truth => json!({"type": "boolean"}),
        Kind::List(kind) => json!({"type": "array", "items": schema(kind)}),
        Kind::Map(kind) => json!({"type": "object", "additionalProperties": schema(kind)}),
        Kind::Struct(fields) => {
            let mut object = json!({"type": "object"});
            for field in fields {
                add(&mut object, &field.name, field_schema(field), field.required);
            }
            object
        }
    }
}

fn field_schema(field: &Field) -> Value {
    let mut schema = schema(&field.kind);
    if !field.words.is_empty() {
        schema["description"] = json!(field.words);
    }
    if !field.values.is_empty() {
        schema["enum"] = json!(field.values);
    }
    for (key, value) in [("minimum", field.least), ("maximum", field.most)] {
        if let Some(value) = value {
            schema[key] = json!(value);
        }
    }
    schema
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let imports = "import metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"";
        writeln!(
            f,
            "// +groupName=fun.example.com\npackage v1\n\n{imports}\n\n// +kubebuilder:object:root=true"
        )?;
        writeln!(f, "type Park struct {{\n\tmetav1.TypeMeta   `json:\",inline\"`")?;
        writeln!(
            f,
            "\tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n\tSpec ParkSpec `json:\"spec,omitempty\"`\n}}\n"
        )?;
        if self.noise {
            writeln!(
                f,
                "// Nothing of interest.\n\n/* +groupName=no.example.com */\n\nvar unused = 1 // +kubebuilder\n"
            )?;
        }
        let mut open = vec![("ParkSpec".to_owned(), &self.fields)];
        while let Some((name, fields)) = open.pop() {
            writeln!(f, "type {name} struct {{")?;
            let mut order: Vec<&Field> = fields.iter().collect();
            if self.noise {
                order.reverse();
            }
            for field in order {
                let go = format!("{}{}", field.name[..1].to_uppercase(), &field.name[1..]);
                let below = format!("{name}{go}");
                write_field(f, field, &go, &below, self.noise)?;
                if let Some(fields) = inner_of(&field.kind) {
                    open.push((below, fields));
                }
            }
            writeln!(f, "}}\n")?;
        }
        Ok(())
    }
}

fn write_field(f: &mut fmt::Formatter<'_>, field: &Field, go: &str, below: &str, noise: bool) -> fmt::Result {
    for line in field.words.lines() {
        writeln!(f, "\t// {line}")?;
    }
    if !field.values.is_empty() {
        let values = field.values.join(";");
        writeln!(
            f,
            "\t// +kubebuilder:validation:Enum={}",
            if noise { format!("{{{}}}", values.replace(';', ",")) } else { values }
        )?;
    }
    if let Some(least) = field.least {
        writeln!(f, "\t// +kubebuilder:validation:Minimum{}={least}", if noise { ":" } else { "" })?;
    }
    if let Some(most) = field.most {
        writeln!(f, "\t// +kubebuilder:validation:Maximum={most}")?;
    }
    // Both ways to say it.
    let (marker, tag) = match (field.required, noise) {
        (true, true) => ("+required", ",omitempty"),
        (true, false) => ("", ""),
        (false, true) => ("+optional", ""),
        (false, false) => ("", ",omitempty"),
    };
    if !marker.is_empty() {
        writeln!(f, "\t// {marker}")?;
    }
    writeln!(f, "\t{go} {} `json:\"{}{tag}\"`", go_type(&field.kind, below), field.name)?;
    if noise {
        writeln!(f)?;
    }
    Ok(())
}

fn go_type(kind: &Kind, below: &str) -> String {
    match kind {
        Kind::Text => "string".to_owned(),
        Kind::Whole => "int32".to_owned(),
        Kind::Truth => "*bool".to_owned(),
        Kind::List(kind) => format!("[]{}", go_type(kind, below)),
        Kind::Map(kind) => format!("map[string]{}", go_type(kind, below)),
        Kind::Struct(_) => below.to_owned(),
    }
}
