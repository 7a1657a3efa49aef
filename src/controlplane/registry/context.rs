//! The context of one write: its user, field manager, dry run and field validation, and the warnings that it
//! collects. Never holds objects.

use opdev_apimachinery::identity::User;
use serde_json::{Map, Value};

/// The outcome for fields the schema does not know.
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

/// See the module.
#[derive(Clone, Debug)]
pub struct Context {
    /// The user who makes the request.
    pub user: User,
    /// The field manager: `fieldManager`, else the user agent up to its first slash.
    pub manager: String,
    /// A dry run: nothing is stored.
    pub dry_run: bool,
    /// The outcome for unknown fields.
    pub validation: FieldValidation,
    /// `Warning` headers to send, each once.
    pub warnings: Vec<String>,
    /// The options of the request, which an AdmissionReview repeats.
    pub options: Map<String, Value>,
    /// Neither webhooks nor policies are called.
    pub skip_admission: bool,
    /// The pod template of the object has `labels: {}`. That means no labels, but errors print it in another
    /// way.
    pub emptied_labels: bool,
    /// A Job without labels takes all labels of its pod template.
    pub shares_labels: bool,
}

impl Context {
    /// A write by this user and manager that is no dry run.
    pub fn new(user: &User, manager: &str) -> Self {
        Context {
            user: user.clone(),
            manager: manager.to_owned(),
            dry_run: false,
            validation: FieldValidation::default(),
            warnings: Vec::new(),
            options: Map::new(),
            skip_admission: false,
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
