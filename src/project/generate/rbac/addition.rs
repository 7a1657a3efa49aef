//! The rules that an operator was refused, and the role file with these rules added.

use crate::manifests::{self, Asked};
use crate::rbac::missing_rules::WRITE;
use crate::rbac::role_files::{Account, Home, RoleFiles};
use anyhow::{Context as _, Result, bail};
use opdev_event::MissingRule;
use opdev_os::read;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The rules that are missing, for who adds them.
#[derive(Clone)]
pub struct Rules {
    pub root: PathBuf,
    pub account: Account,
    /// True if saved role files reach the API server by themselves.
    pub applies: bool,
    pub missing: Arc<Mutex<Vec<MissingRule>>>,
}

/// A role file as it is and as it would be.
pub struct Addition {
    pub path: PathBuf,
    /// Relative to the project's root.
    pub file: String,
    /// `None` where there is no such file yet.
    pub before: Option<String>,
    pub after: String,
    /// A note for the user before it is written.
    pub notes: Vec<String>,
}

impl Rules {
    pub fn lock(&self) -> std::sync::MutexGuard<'_, Vec<MissingRule>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The verbs that the project's charts and markers need for a resource; none where they do not name it.
    pub fn needed(&self, group: &str, resource: &str) -> Vec<String> {
        let asked = Asked { charts: true, ..Asked::default() };
        let made = manifests::roles(&self.root, &asked);
        let roles = made.and_then(|made| super::roles(&made)).unwrap_or_default();
        let names =
            |list: &Value, name: &str| list.as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let rules = roles.iter().filter_map(|role| role["rules"].as_array()).flatten();
        let rules =
            rules.filter(|rule| names(&rule["apiGroups"], group) && names(&rule["resources"], resource));
        let verbs = rules.filter_map(|rule| rule["verbs"].as_array()).flatten().filter_map(Value::as_str);
        // A scaffold allows all verbs where a writer's are enough.
        let each = verbs.flat_map(|verb| if verb == "*" { WRITE.to_vec() } else { vec![verb] });
        each.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The role file with all missing rules in it.
    ///
    /// # Errors
    /// Where nothing is missing, or the file cannot be read or added to.
    pub fn addition(&self) -> Result<Addition> {
        let missing = self.lock().clone();
        if missing.is_empty() {
            bail!("no rule is known to be missing");
        }
        let files = RoleFiles::read(&self.root);
        let Home { file, kind, name } = files.home(&self.account);
        let path = self.root.join(&file);
        let before = match read::text(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("{file} cannot be read")),
        };
        // A missing file is written as a whole: the rules alone would take away the rights that the charts
        // need.
        let base = before.clone().or(files.generated).unwrap_or_default();
        let all: Vec<&MissingRule> = missing.iter().collect();
        let after = crate::rbac::missing_rules::with_rules(&base, &kind, &name, &all)
            .with_context(|| format!("{file}: the rules cannot be added"))?;
        if before.as_ref() == Some(&after) {
            bail!(
                "{file} has the rules that are missing; the API server takes them up as soon as the file is right"
            );
        }
        let mut notes = Vec::new();
        if self.root.join("go.mod").is_file() {
            notes.push(
                "Markers (+kubebuilder:rbac) write this file: add the rules there too, or they go with the next run."
                    .to_owned(),
            );
        }
        if !self.applies {
            notes.push("The file is written, not applied: on this cluster that is yours to do.".to_owned());
        }
        Ok(Addition { path, file, before, after, notes })
    }
}
