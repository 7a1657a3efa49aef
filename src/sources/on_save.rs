//! The effect of a saved chart on the deployed revision.

/// The effect of a saved chart on the deployed revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnSave {
    /// A new revision where a hook differs or the chart reads which revision it is; else the deployed one
    /// takes the new rendering in.
    #[default]
    ByHooks,
    /// The deployed revision takes the new rendering in; no hook runs.
    Rewrite,
    /// Always a new revision, with its hooks, as in production.
    Upgrade,
}
