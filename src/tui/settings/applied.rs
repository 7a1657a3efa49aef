//! Settings that were taken in, and their errors.

use opdev_event::{Diagnostic, Preferences, words};
use opdev_panes::theme::Theme;
use std::sync::Arc;

/// The outcome of the settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Following {
    /// The settings that were looked at last.
    pub(crate) seen: Option<Arc<Preferences>>,
    /// The theme that the terminal itself asks for.
    pub(crate) terminal: Theme,
    pub(crate) problems: Vec<Diagnostic>,
}

impl Following {
    /// Nothing yet, on a terminal that asks for these colours.
    pub(crate) fn on(terminal: Theme) -> Self {
        Following { terminal, ..Following::default() }
    }

    /// Forgets what was told; false where there was nothing.
    pub(crate) fn dismiss(&mut self) -> bool {
        !std::mem::take(&mut self.problems).is_empty()
    }

    /// The problem with the settings, in words.
    pub(crate) fn told(&self) -> Option<Vec<String>> {
        let first = self.problems.first()?;
        let mut lines = vec![format!("✗ {}", words::diagnostic(first))];
        lines.extend(first.hint.as_deref().map(words::one_line));
        let more = self.problems.len() - 1;
        let more = if more > 0 { format!("{more} more of them. ") } else { String::new() };
        lines.push(format!("{more}Keys and colours stay as they were."));
        Some(lines)
    }
}
