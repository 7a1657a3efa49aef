//! Where transformations happen: the field specs of kustomize and those that `configurations` and `crds` add.

use crate::error::ErrorKind;
use crate::fields::{self, FieldSpec};
use serde::Deserialize;

/// A kind, and the fields of other kinds that hold its objects' names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Referrers {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) field_specs: Vec<FieldSpec>,
}

/// Field specs by what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Config {
    pub(crate) name_prefix: Vec<FieldSpec>,
    pub(crate) name_suffix: Vec<FieldSpec>,
    pub(crate) namespace: Vec<FieldSpec>,
    pub(crate) common_labels: Vec<FieldSpec>,
    pub(crate) labels: Vec<FieldSpec>,
    pub(crate) template_labels: Vec<FieldSpec>,
    pub(crate) common_annotations: Vec<FieldSpec>,
    pub(crate) name_reference: Vec<Referrers>,
    pub(crate) images: Vec<FieldSpec>,
    pub(crate) replicas: Vec<FieldSpec>,
    pub(crate) var_reference: Vec<FieldSpec>,
}

impl Config {
    /// Adds what another one has.
    pub(crate) fn merge(&mut self, other: &Config) -> Result<(), ErrorKind> {
        for (mine, theirs) in [
            (&mut self.name_prefix, &other.name_prefix),
            (&mut self.name_suffix, &other.name_suffix),
            (&mut self.namespace, &other.namespace),
            (&mut self.common_labels, &other.common_labels),
            (&mut self.labels, &other.labels),
            (&mut self.template_labels, &other.template_labels),
            (&mut self.common_annotations, &other.common_annotations),
            (&mut self.images, &other.images),
            (&mut self.replicas, &other.replicas),
            (&mut self.var_reference, &other.var_reference),
        ] {
            theirs.iter().try_for_each(|spec| fields::add(mine, spec))?;
        }
        for theirs in &other.name_reference {
            let same = |mine: &&mut Referrers| {
                mine.group == theirs.group && mine.version == theirs.version && mine.kind == theirs.kind
            };
            match self.name_reference.iter_mut().find(same) {
                Some(mine) => {
                    theirs
                        .field_specs
                        .iter()
                        .try_for_each(|spec| fields::add(&mut mine.field_specs, spec))?;
                }
                None => self.name_reference.push(theirs.clone()),
            }
        }
        Ok(())
    }
}
