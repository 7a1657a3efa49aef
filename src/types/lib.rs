//! Type files to CRDs. So far: CRD YAML as a source of its own (`crd`), and the schema-less CRD the
//! Operator SDK scaffolds for a chart. Go type files come later. Pure: text in, JSON out.

pub mod crd;
