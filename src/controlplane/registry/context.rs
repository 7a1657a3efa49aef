//! What a write needs to know about who asks and how: user, field manager, dry run, field validation; and the
//! warnings it collects on the way. Never holds objects.

use crate::identity::User;
use serde_json::{Map, Value};

/// What happens to fields the schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Dropped silently.
    Ignore,
    /// Dropped with a warning.
    #[default]
    Warn,
    /// Refused.
    Strict,
}

/// One write's circumstances.
#[derive(Clone, Debug)]
pub struct Context {
    /// Who asks.
    pub user: User,
    /// The field manager: `fieldManager`, else the user agent up to its first slash.
    pub manager: String,
    /// Nothing is kept.
    pub dry_run: bool,
    /// Unknown fields.
    pub validation: FieldValidation,
    /// `Warning` headers to send, each once.
    pub warnings: Vec<String>,
    /// The options that the request names, as webhooks are told of them.
    pub options: Map<String, Value>,
    /// Webhooks have no say in it, or have said it already.
    pub unasked: bool,
    /// The object came with a template that has `labels: {}`: as good as none, but told apart where they are printed.
    pub emptied_labels: bool,
    /// A job came without labels and has those of its pods, with all that are added there.
    pub shares_labels: bool,
}

impl Context {
    /// A write by this user and manager, for real.
    pub fn new(user: &User, manager: &str) -> Self {
        Context {
            user: user.clone(),
            manager: manager.to_owned(),
            dry_run: false,
            validation: FieldValidation::default(),
            warnings: Vec::new(),
            options: Map::new(),
            unasked: false,
            emptied_labels: false,
            shares_labels: false,
        }
    }

    /// Adds a warning unless it is there already.
    pub fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }
}
