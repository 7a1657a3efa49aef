//! The panes of the screen, and the names of the tabs of the detail pane.

/// The panes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pane {
    /// Custom resources.
    #[default]
    Resources,
    /// The objects that the selected one owns.
    Owned,
    /// Its reconciles.
    Reconciles,
    /// One thing in detail.
    Detail,
    /// The operator's log; a pane of its own only where there is room for it.
    Log,
}

impl Pane {
    /// How many there are.
    pub const COUNT: usize = 5;

    /// In the order of tab.
    pub const ALL: [Pane; Pane::COUNT] =
        [Pane::Resources, Pane::Owned, Pane::Reconciles, Pane::Detail, Pane::Log];

    /// Its place in that order.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its name.
    pub fn title(self) -> &'static str {
        match self {
            Pane::Resources => "Custom resources",
            Pane::Owned => "Owned",
            Pane::Reconciles => "Reconciles",
            Pane::Detail => "Detail",
            Pane::Log => "Operator log",
        }
    }
}

/// A tab of the detail pane, by the name of the action that shows it. Each has a file in `detail`, which
/// names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tab(pub(crate) &'static str);
