//! The panes of the screen, and the tabs of the detail pane.

/// The panes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pane {
    /// Custom resources.
    #[default]
    Resources,
    /// What the selected one owns.
    Owned,
    /// Its reconciles.
    Reconciles,
    /// One thing in detail.
    Detail,
}

impl Pane {
    /// In the order of tab.
    pub const ALL: [Pane; 4] = [Pane::Resources, Pane::Owned, Pane::Reconciles, Pane::Detail];

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
        }
    }
}

/// The tabs of the detail pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    /// Why a reconcile ran, and what it changed in the status.
    #[default]
    Status,
    /// What it changed elsewhere.
    Objects,
    /// Which API calls it made.
    Calls,
    /// Log lines.
    Log,
    /// The selected object in words: what it waits for, why it does not go.
    Describe,
    /// The selected object as YAML.
    Yaml,
    /// Its conditions over time.
    Conditions,
    /// Its versions.
    History,
    /// Logs of its pods.
    Pods,
    /// What the last saves of its type and its reconciler change.
    Impact,
    /// The values that its chart gets, each with who gives it.
    Values,
    /// Kubernetes Events and notices.
    Events,
}

impl Tab {
    /// In the order of the tab bar.
    pub const ALL: [Tab; 12] = [
        Tab::Status,
        Tab::Objects,
        Tab::Calls,
        Tab::Log,
        Tab::Describe,
        Tab::Yaml,
        Tab::Conditions,
        Tab::History,
        Tab::Pods,
        Tab::Impact,
        Tab::Values,
        Tab::Events,
    ];

    /// Its name.
    pub fn title(self) -> &'static str {
        match self {
            Tab::Status => "Status",
            Tab::Objects => "Objects",
            Tab::Calls => "Calls",
            Tab::Log => "Log",
            Tab::Describe => "Describe",
            Tab::Yaml => "YAML",
            Tab::Conditions => "Conditions",
            Tab::History => "History",
            Tab::Pods => "Pod logs",
            Tab::Impact => "Impact",
            Tab::Values => "Values",
            Tab::Events => "Events",
        }
    }
}
