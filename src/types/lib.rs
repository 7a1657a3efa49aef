//! Type files to CRDs. For now: CRD YAML as a source of its own, and the schema-less CRD that the
//! Operator SDK scaffolds for a chart. Go type files come later.
