//! An action in words: its name, keys and help. All of them, with what they do, are in `src/tui/keys/registry.rs`.

use crate::layout::Side;
use crate::pane::{Pane, Tab};

/// Actions; one variant each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Do {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    Top,
    Bottom,
    NextPane,
    PreviousPane,
    Pane(Pane),
    Open,
    Back,
    NextTab,
    PreviousTab,
    Show(Tab),
    See(See),
    Held,
    HoldCharts,
    Disturb,
    Unlock,
    Freeze,
    Zoom,
    Border(Side),
    Filter,
    Scope,
    Wrap,
    Apply,
    Scale,
    Delete,
    Reconcile,
    New,
    Edit,
    Undo,
    AddRules,
    FetchDependencies,
    Pause,
    PauseKind,
    Step,
    Check,
    Fail,
    Tasks,
    Notices,
    Findings,
    Torture,
    Upgrade,
    Copy,
    OpenFile,
    Shell,
    Forward,
    OwnCommands,
    Save,
    Mark,
    MarkRange,
    MarkOthers,
    Reload,
    /// Finds something; what exactly is in `find`.
    Seek(Seek),
    Help,
    Memory,
    Redraw,
    Suspend,
    Quit,
    Stop,
}

/// Actions that fold, open or show something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum See {
    FoldLog,
    ManagedFields,
    FieldOwners,
    OlderVersion,
    NewerVersion,
    Deleted,
    NextContainer,
    Previous,
}

/// The actions of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Seek {
    Palette,
    Jump,
    Faults,
    Sort,
    Turn,
    Wide,
    Namespace,
    AllNamespaces,
    /// Sorts by one column; a second time turns the order around.
    By(SortKey),
    Context,
    Theme,
    Mouse,
    Text,
    Next,
    Previous,
    MoreLog,
    LessLog,
    Hold,
}

/// A column that a key of its own sorts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SortKey {
    Name,
    Status,
    Ready,
    Kind,
    Age,
}

/// Where an action stands in the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Changes the cluster or the operator.
    Act,
    /// Changes what is shown.
    Look,
    /// Changes where one is.
    Move,
    /// The program itself.
    Program,
}

impl Section {
    /// In the order of the help.
    pub const ALL: [Section; 4] = [Section::Act, Section::Look, Section::Move, Section::Program];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Section::Act => "Act",
            Section::Look => "Look",
            Section::Move => "Move",
            Section::Program => "opdev",
        }
    }
}

/// One action.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    /// Its name in the settings.
    pub id: &'static str,
    /// The action.
    pub does: Do,
    /// Its keys, unless bound anew.
    pub keys: &'static [&'static str],
    /// One word for the footer.
    pub title: &'static str,
    /// One sentence for the help.
    pub about: &'static str,
    /// Where it stands in the help.
    pub section: Section,
    /// True if it destroys something.
    pub destructive: bool,
    /// The panes whose footer names it.
    pub footer: &'static [Pane],
    /// Other names for it in the palette.
    pub aliases: &'static [&'static str],
    /// True if its keys count only while one searches in the detail pane; there they come first.
    pub finding: bool,
}

/// An action without words.
pub const fn action(id: &'static str, does: Do, keys: &'static [&'static str], section: Section) -> Action {
    Action {
        id,
        does,
        keys,
        title: "",
        about: "",
        section,
        destructive: false,
        footer: &[],
        aliases: &[],
        finding: false,
    }
}

impl Action {
    /// Its name and what it does.
    pub const fn about(mut self, title: &'static str, about: &'static str) -> Self {
        self.title = title;
        self.about = about;
        self
    }

    /// It destroys something.
    pub const fn destroys(mut self) -> Self {
        self.destructive = true;
        self
    }

    /// Other names of it.
    pub const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Its keys count only while one searches.
    pub const fn finding(mut self) -> Self {
        self.finding = true;
        self
    }

    /// The panes whose footer names it.
    pub const fn footer(mut self, panes: &'static [Pane]) -> Self {
        self.footer = panes;
        self
    }
}

/// Whoever knows which keys an action has.
pub trait KeyNames {
    /// The first key of an action; empty where it has none.
    fn first(&self, does: Do) -> String;
}
