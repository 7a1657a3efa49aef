//! References resolved and `allOf` merged, in the order controller-tools does it: the order decides whose
//! description, rule or bound wins where a type, a field and an inlined struct disagree.

use super::package::TypeId;
use super::profile::{Level, Profile};
use super::schema::{Additional, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// Gives the schema of a type with its references still in it.
pub(crate) trait Types {
    /// The schema; an empty one where the type is not known.
    fn schema(&mut self, id: &TypeId) -> Arc<Schema>;
    /// Two branches of one schema have different types.
    fn conflict(&mut self, have: &str, want: &str);
    /// The release that is followed.
    fn profile(&self) -> &Profile;
    /// The schema is nested too deeply, or has become too large, to go on.
    fn too_large(&mut self);
}

/// Types with their references resolved, and schemas with their `allOf` merged by the schema they were made
/// of; kept for reuse.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    types: HashMap<TypeId, Arc<Schema>>,
    /// By address, which stays taken as the schema is kept beside.
    merged: HashMap<usize, (Arc<Schema>, Arc<Schema>)>,
    depth: usize,
    /// How many schemas one CRD may still make.
    budget: usize,
}

/// How deep a CRD's schema may be nested.
const DEPTH: usize = 80;
/// How many schemas one CRD may have; API servers take no more than a few megabytes.
const MOST: usize = 100_000;
/// How many merged schemas are kept.
const KEPT: usize = 60_000;

impl Resolved {
    /// Forgets all but some types.
    pub(crate) fn retain(&mut self, keep: impl Fn(&TypeId) -> bool) {
        self.types.retain(|id, _| keep(id));
        if self.merged.len() > KEPT {
            self.merged.clear();
        }
    }
}

/// The whole schema of a type.
pub(crate) fn flatten(types: &mut dyn Types, resolved: &mut Resolved, id: &TypeId) -> Schema {
    resolved.depth = 0;
    resolved.budget = MOST;
    let root = resolve(types, resolved, id);
    let mut schema = Schema::clone(&root);
    embed(types, resolved, &mut schema);
    // Shared parts count as often as they stand in the CRD.
    let mut left = MOST;
    if !fits(&schema, &mut left) {
        types.too_large();
        return Schema::with_type("object");
    }
    schema
}

fn fits(schema: &Schema, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let additional = match &schema.additional {
        Some(Additional::Schema(schema)) => Some(schema),
        Some(Additional::Anything) | None => None,
    };
    let inner = schema.items.iter().chain(&schema.all_of).chain(schema.properties.values()).chain(additional);
    inner.into_iter().all(|child| fits(child, left))
}

/// A type with all references in it resolved; they stand in `allOf` still.
fn resolve(types: &mut dyn Types, resolved: &mut Resolved, id: &TypeId) -> Arc<Schema> {
    if let Some(found) = resolved.types.get(id) {
        return found.clone();
    }
    let mut schema = Arc::unwrap_or_clone(types.schema(id));
    walk(types, resolved, &mut schema);
    let schema = Arc::new(schema);
    resolved.types.insert(id.clone(), schema.clone());
    schema
}

fn walk(types: &mut dyn Types, resolved: &mut Resolved, schema: &mut Schema) {
    let mut open: Vec<(TypeId, Schema)> = Vec::new();
    let mut done = false;
    while let Some(id) = schema.reference.take() {
        if let Some(found) = resolved.types.get(&id) {
            let field = std::mem::replace(schema, Schema::clone(found));
            preserve(schema, field);
            done = true;
            break;
        }
        let field = std::mem::replace(schema, Arc::unwrap_or_clone(types.schema(&id)));
        // A type that contains itself ends here: with nothing.
        resolved.types.insert(id.clone(), Arc::default());
        open.push((id, field));
        if open.len() > DEPTH {
            types.too_large();
            break;
        }
    }
    if !done {
        resolved.depth += 1;
        if resolved.depth > DEPTH {
            types.too_large();
        } else {
            children(schema, &mut |child| walk(types, resolved, child));
        }
        resolved.depth -= 1;
    }
    for (id, field) in open.into_iter().rev() {
        resolved.types.insert(id, Arc::new(schema.clone()));
        preserve(schema, field);
    }
}

fn children(schema: &mut Schema, visit: &mut dyn FnMut(&mut Schema)) {
    each_child(schema, &mut |child| {
        if !is_leaf(child) {
            visit(Arc::make_mut(child));
        }
    });
}

/// All schemas right below one.
pub(crate) fn each_child(schema: &mut Schema, visit: &mut dyn FnMut(&mut Arc<Schema>)) {
    let inner = schema.items.iter_mut().chain(&mut schema.all_of).chain(&mut schema.any_of);
    let inner = inner.chain(schema.properties.values_mut());
    let additional = match &mut schema.additional {
        Some(Additional::Schema(schema)) => Some(schema),
        Some(Additional::Anything) | None => None,
    };
    for child in inner.chain(additional) {
        visit(child);
    }
}

/// Nothing below it can change, so that the shared copy may stay.
fn is_leaf(schema: &Schema) -> bool {
    schema.reference.is_none()
        && schema.items.is_none()
        && schema.all_of.is_empty()
        && schema.any_of.is_empty()
        && schema.properties.is_empty()
        && !matches!(schema.additional, Some(Additional::Schema(_)))
}

/// Keeps the texts of a field beside the type it refers to: its documentation wins, the rest goes into
/// `allOf`.
fn preserve(schema: &mut Schema, mut field: Schema) {
    field.reference = None;
    let (description, title) = (field.description.take(), field.title.take());
    let (docs, example) = (field.external_docs.take(), field.example.take());
    let origin = field.origin.clone();
    let of_type = std::mem::take(schema);
    *schema = Schema {
        description: description.filter(|text| !text.is_empty()).or_else(|| of_type.description.clone()),
        title: title.filter(|text| !text.is_empty()).or_else(|| of_type.title.clone()),
        external_docs: docs.or_else(|| of_type.external_docs.clone()),
        example: example.or_else(|| of_type.example.clone()),
        origin: origin.or_else(|| of_type.origin.clone()),
        all_of: vec![Arc::new(of_type), Arc::new(field)],
        ..Schema::default()
    };
}

/// Merges every `allOf` of a resolved schema into the schema it stands in.
fn embed(types: &mut dyn Types, resolved: &mut Resolved, schema: &mut Schema) {
    for branch in std::mem::take(&mut schema.all_of) {
        merge(types, schema, &branch);
    }
    resolved.depth += 1;
    if resolved.depth > 2 * DEPTH || resolved.budget == 0 {
        types.too_large();
        *schema = Schema::default();
    } else {
        resolved.budget -= 1;
        each_child(schema, &mut |child| {
            if !is_leaf(child) {
                embed_shared(types, resolved, child);
            }
        });
    }
    resolved.depth -= 1;
}

/// Merges every `allOf` of a schema that others may share: the result of one merge is used again.
fn embed_shared(types: &mut dyn Types, resolved: &mut Resolved, schema: &mut Arc<Schema>) {
    if Arc::strong_count(schema) == 1 {
        return embed(types, resolved, Arc::make_mut(schema));
    }
    let address = Arc::as_ptr(schema) as usize;
    if let Some((_, merged)) = resolved.merged.get(&address) {
        *schema = merged.clone();
        return;
    }
    let source = schema.clone();
    embed(types, resolved, Arc::make_mut(schema));
    resolved.merged.insert(address, (source, schema.clone()));
}

struct Merge<'m> {
    source_left: &'m mut Schema,
    target_left: &'m mut Schema,
    hoisted: bool,
}

impl Merge<'_> {
    /// Takes over what is missing; what both have and cannot be joined goes aside, from both.
    fn either<T: Clone>(
        &mut self,
        target: &mut Option<T>,
        source: Option<&T>,
        left: fn(&mut Schema) -> &mut Option<T>,
    ) {
        let Some(source) = source else { return };
        match target.take() {
            None => *target = Some(source.clone()),
            Some(have) => {
                *left(self.target_left) = Some(have);
                *left(self.source_left) = Some(source.clone());
                self.hoisted = true;
            }
        }
    }

    /// Takes over values as `either` does, but equal values are one.
    fn same<T: Clone + PartialEq>(
        &mut self,
        target: &mut Option<T>,
        source: Option<&T>,
        left: fn(&mut Schema) -> &mut Option<T>,
    ) {
        if target.as_ref() != source {
            self.either(target, source, left);
        }
    }

    /// Takes over values as `same` does, but only where both are the one value that a marker of a type or
    /// field gave: a type that is reached twice says it once. Equal values of different markers go aside.
    fn shared<T: ?Sized>(
        &mut self,
        target: &mut Option<Arc<T>>,
        source: Option<&Arc<T>>,
        left: fn(&mut Schema) -> &mut Option<Arc<T>>,
    ) {
        let one = target.as_ref().zip(source).is_some_and(|(have, more)| Arc::ptr_eq(have, more));
        if !one {
            self.either(target, source, left);
        }
    }

    fn list<T: Clone>(&mut self, target: &mut Vec<T>, source: &[T], left: fn(&mut Schema) -> &mut Vec<T>) {
        if source.is_empty() {
            return;
        }
        if target.is_empty() {
            *target = source.to_vec();
            return;
        }
        *left(self.target_left) = std::mem::take(target);
        *left(self.source_left) = source.to_vec();
        self.hoisted = true;
    }
}

/// Merges one schema, and before it what stands in its own `allOf`, into another.
fn merge(types: &mut dyn Types, target: &mut Schema, source: &Schema) {
    for branch in &source.all_of {
        merge(types, target, branch);
    }
    let (mut source_left, mut target_left) = (Schema::default(), Schema::default());
    let mut merge = Merge { source_left: &mut source_left, target_left: &mut target_left, hoisted: false };
    bounds(types, &mut merge, target, source);
    merge.list(&mut target.any_of, &source.any_of, |s| &mut s.any_of);
    if types.profile().at_least(Level::V0_23) {
        if !source.list_map_keys.is_empty() {
            target.list_map_keys.clone_from(&source.list_map_keys);
        }
        if source.list_type.is_some() {
            target.list_type.clone_from(&source.list_type);
        }
    } else {
        merge.list(&mut target.list_map_keys, &source.list_map_keys, |s| &mut s.list_map_keys);
        merge.shared(&mut target.list_type, source.list_type.as_ref(), |s| &mut s.list_type);
    }
    if types.profile().at_least(Level::V0_21) {
        if target.choices.is_empty() {
            target.choices.clone_from(&source.choices);
        }
    } else {
        merge.list(&mut target.choices, &source.choices, |s| &mut s.choices);
    }
    if types.profile().at_least(Level::V0_16) {
        if !source.rules.is_empty() {
            let have = std::mem::replace(&mut target.rules, source.rules.clone());
            target.rules.extend(have);
        }
    } else {
        merge.list(&mut target.rules, &source.rules, |s| &mut s.rules);
    }
    merge.either(&mut target.items, source.items.as_ref(), |s| &mut s.items);
    let hoisted = merge.hoisted;
    structure(types, target, source);
    if hoisted {
        target.all_of.push(Arc::new(target_left));
        target.all_of.push(Arc::new(source_left));
    }
    if !target.required.is_empty() {
        target.required.sort();
        target.required.dedup();
    }
}

/// Types, formats, defaults and limits.
fn bounds(types: &mut dyn Types, merge: &mut Merge<'_>, target: &mut Schema, source: &Schema) {
    match (target.kind.as_deref(), source.kind.as_deref()) {
        (_, None) => {}
        (None, Some(_)) => target.kind.clone_from(&source.kind),
        (Some(have), Some(want)) if have != want => types.conflict(have, want),
        (Some(_), Some(_)) => {}
    }
    merge.same(&mut target.format, source.format.as_ref(), |s| &mut s.format);
    merge.same(&mut target.pattern, source.pattern.as_ref(), |s| &mut s.pattern);
    merge.shared(&mut target.default, source.default.as_ref(), |s| &mut s.default);
    merge.either(&mut target.maximum, source.maximum.as_ref(), |s| &mut s.maximum);
    merge.either(&mut target.minimum, source.minimum.as_ref(), |s| &mut s.minimum);
    merge.either(&mut target.max_length, source.max_length.as_ref(), |s| &mut s.max_length);
    merge.either(&mut target.min_length, source.min_length.as_ref(), |s| &mut s.min_length);
    merge.either(&mut target.max_items, source.max_items.as_ref(), |s| &mut s.max_items);
    merge.either(&mut target.min_items, source.min_items.as_ref(), |s| &mut s.min_items);
    merge.either(&mut target.multiple_of, source.multiple_of.as_ref(), |s| &mut s.multiple_of);
    let (most, least) = (source.max_properties.as_ref(), source.min_properties.as_ref());
    if types.profile().at_least(Level::V0_22) {
        merge.same(&mut target.max_properties, most, |s| &mut s.max_properties);
        merge.same(&mut target.min_properties, least, |s| &mut s.min_properties);
    } else {
        merge.either(&mut target.max_properties, most, |s| &mut s.max_properties);
        merge.either(&mut target.min_properties, least, |s| &mut s.min_properties);
    }
    target.exclusive_maximum |= source.exclusive_maximum;
    target.exclusive_minimum |= source.exclusive_minimum;
    target.unique_items |= source.unique_items;
    target.nullable |= source.nullable;
    target.embedded_resource |= source.embedded_resource;
    target.int_or_string |= source.int_or_string;
    if source.preserve_unknown.is_some() {
        target.preserve_unknown = source.preserve_unknown;
    }
    if source.map_type.is_some() {
        target.map_type.clone_from(&source.map_type);
    }
    target.required.extend(source.required.iter().cloned());
}

/// Properties and map values.
fn structure(types: &mut dyn Types, target: &mut Schema, source: &Schema) {
    for (name, property) in &source.properties {
        match target.properties.get_mut(name) {
            Some(have) => merge(types, Arc::make_mut(have), property),
            None => {
                target.properties.insert(name.clone(), property.clone());
            }
        }
    }
    match (&mut target.additional, &source.additional) {
        (_, None) | (Some(_), Some(Additional::Anything)) => {}
        (have @ None, Some(_)) => have.clone_from(&source.additional),
        (Some(Additional::Schema(have)), Some(Additional::Schema(more))) => {
            merge(types, Arc::make_mut(have), more);
        }
        (have @ Some(Additional::Anything), Some(Additional::Schema(more))) => {
            let mut schema = Schema::default();
            merge(types, &mut schema, more);
            *have = Some(Additional::Schema(Arc::new(schema)));
        }
    }
}
