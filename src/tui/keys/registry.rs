//! The one registry of actions: keys, footer, help and palette all come from here, and so does what a key does. Those that
//! show a tab of the detail pane stand in the file of the tab.

use super::keymap::Keymap;
use super::row::{Row, asks, shows, views};
use crate::act::ask::ask;
use crate::act::writable::{is_connected, may_write};
use crate::act::{self, change_view, leave, moves, open_file, programs, reconciles};
use crate::command::Command;
use crate::dialog::background;
use crate::dialog::{
    Copy, FilterLine, FindingsList, Help, Memory, New, Notices, Samples, SearchLine, Tasks, Undo,
};
use crate::find::picker::open;
use crate::find::{self, search_step};
use opdev_event::{DraftTask, ProjectTask, SourcesTask};
use opdev_panes::detail::TABS;
use opdev_panes::keys::action::{Do, Section, See, Seek, SortKey, action};
use opdev_panes::layout::Side;
use opdev_panes::lists::candidates::What;
use opdev_panes::lists::table::Column;
use opdev_panes::pane::Pane;
use std::sync::LazyLock;

const ALL: &[Pane] = &Pane::ALL;
const LISTS: &[Pane] = &[Pane::Resources, Pane::Owned];

/// All of them, in the order of footer and help.
pub(crate) static ACTIONS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut tabs: Vec<_> = TABS.iter().map(|tab| (tab.place(), shows(tab.action(), tab.tab()))).collect();
    tabs.sort_by_key(|(place, _)| *place);
    let tabs = tabs.into_iter().map(|(_, action)| action);
    BEFORE_TABS.iter().copied().chain(tabs).chain(AFTER_TABS.iter().copied()).collect()
});

/// Those that stand before the tabs of the detail pane.
static BEFORE_TABS: &[Row] = &[
    views(action("open", Do::Open, &["enter"], Section::Look)
        .about("open", "Show more of what is selected; on a small screen as a page, and esc goes back.")
        .footer(&[Pane::Resources, Pane::Owned, Pane::Reconciles]), moves::open),
    views(action("apply", Do::Apply, &["a"], Section::Act)
        .about("apply", "Apply a sample or a file.")
        .footer(&[Pane::Resources]), |view, _| view.open(Samples::default())).when(may_write),
    views(action("new", Do::New, &["n"], Section::Act)
        .about("new", "Write a new custom resource in your editor, from a sample or from its schema.")
        .footer(&[Pane::Resources]), |view, _| view.open(New::default())).when(may_write),
    asks(action("edit", Do::Edit, &["e"], Section::Act)
        .about("edit", "Edit the selected object in your editor; you see what changes before it is written.")
        .footer(LISTS), act::edit).when(act::can_edit),
    views(action("undo", Do::Undo, &["u"], Section::Act)
        .about("undo", "Show what was applied, edited, scaled and deleted, and undo it."), |view, _| view.open(Undo::default())).when(act::can_undo),
    views(action("scale", Do::Scale, &["s"], Section::Act)
        .about("scale", "Set the replicas of the selected object.")
        .footer(LISTS), act::scale).when(act::can_scale),
    views(action("delete", Do::Delete, &["D"], Section::Act)
        .about("delete", "Delete the selected object, after a question.")
        .destroys()
        .footer(LISTS), act::delete).when(act::can_delete),
    asks(action("reconcile", Do::Reconcile, &["r"], Section::Act)
        .about("reconcile", "Reconcile the selected custom resource now.")
        .footer(ALL), reconciles::reconcile).when(reconciles::can_reconcile),
    asks(action("pause", Do::Pause, &["p"], Section::Act)
        .about("pause", "Pause or resume the selected custom resource; its causes collect meanwhile.")
        .footer(&[Pane::Resources]), reconciles::pause).when(reconciles::can_pause),
    asks(action("pause-kind", Do::PauseKind, &["P"], Section::Act)
        .about("pause kind", "Pause or resume all custom resources of the selected kind."), reconciles::pause_kind).when(reconciles::can_pause_kind),
    asks(action("step", Do::Step, &["."], Section::Act)
        .about("step", "Run exactly one reconcile of the selected custom resource, paused or not."), reconciles::step).when(reconciles::can_step),
    views(action("fail", Do::Fail, &["!"], Section::Act)
        .about("fail", "Make a simulated pod crash, unready or evicted, or let it recover.")
        .also(&["chaos", "crash"]), |view, state| open(view, What::Failure, state)).when(act::can_fail),
    asks(action("check", Do::Check, &["="], Section::Act)
        .about(
            "check",
            "Reconcile the selected custom resource twice: the second time nothing should be written.",
        )
        .also(&["idempotent"]), reconciles::check).when(reconciles::can_check),
    views(action("mark", Do::Mark, &["space", "m"], Section::Act).about(
        "mark",
        "Mark or unmark a row; actions then take all marked ones. In other panes: a page down.",
    ), moves::mark),
    views(action("mark-range", Do::MarkRange, &["M"], Section::Act)
        .about("mark range", "Mark all rows from the one marked last to this one."), |view, _| view.mark_range()),
    views(action("mark-others", Do::MarkOthers, &["*"], Section::Act)
        .about("mark others", "Mark what is not marked, and unmark what is; esc unmarks all."), |view, _| view.mark_others()),
    views(action("copy", Do::Copy, &["c"], Section::Look)
        .about("copy", "Copy a name, YAML or a kubectl command to the clipboard of your terminal."), |view, _| view.open(Copy::default())),
    asks(action("open-file", Do::OpenFile, &["ctrl-o"], Section::Look)
        .about(
            "open file",
            "Open the file that is broken, or that the selected failure or finding names, at its line in your editor.",
        )
        .also(&["editor"]), |view, state| open_file::open(view, state)).when(open_file::enabled),
    asks(action("save", Do::Save, &["g w"], Section::Look).about(
        "save",
        "Save the lines of the detail pane, such as a log, below .opdev/saved; `:save FILE` takes a file.",
    ), |view, state| act::save(None, view, state)).when(act::can_save),
    asks(action("shell", Do::Shell, &["g s"], Section::Act)
        .about("shell", "Open a shell in the selected pod, with kubectl exec; exit comes back.")
        .also(&["exec", "sh"]), programs::shell).when(|view, state| programs::shell_in(view, state).map(drop)),
    views(action("forward", Do::Forward, &["g f"], Section::Act)
        .about("forward", "Forward a port of the selected pod, Service or workload to 127.0.0.1, with kubectl.")
        .also(&["port-forward", "pf"]), |view, state| open(view, What::Ports, state)).when(|view, state| programs::forwarded(view, state).map(drop)),
    views(action("own-commands", Do::OwnCommands, &["g x"], Section::Act)
        .about("own commands", "Run a command of your own config.yaml on what is selected.")
        .also(&["run"]), |view, state| open(view, What::Commands, state)).when(programs::has_own),
    views(action("tasks", Do::Tasks, &["T"], Section::Look)
        .about("tasks", "Show what was asked for, with its result; cancel what is under way."), |view, _| view.open(Tasks::default())),
    views(action("notices", Do::Notices, &["@"], Section::Look)
        .about("notices", "Show all notices, what is still true first."), |view, _| view.open(Notices::default())),
    views(action("findings", Do::Findings, &["f", "g i"], Section::Look)
        .about("findings", "Show what is wrong with the operator: why, since when, and how to repair it."), |view, _| view.open(FindingsList::default())),
    views(action("torture", Do::Torture, &["g t"], Section::Look)
        .about(
            "torture",
            "Torture the operator beside the screen: killed between two writes, late, blind, on control planes of its own.",
        )
        .also(&["sieve"]), background::open_torture).when(background::possible),
    views(action("upgrade", Do::Upgrade, &["g v"], Section::Look)
        .about(
            "upgrade",
            "Rehearse the upgrade from a released version on objects of its own; `:upgrade v1.3.0` names the version.",
        )
        .also(&["rehearse", "release"]), background::open_upgrade).when(background::possible),
    views(action("held", Do::Held, &["H"], Section::Act).about(
        "held",
        "Answer a question: about a change, or about what the project wants to be trusted with.",
    ), act::answer).when(act::can_answer),
    asks(action("hold-charts", Do::HoldCharts, &["g h"], Section::Act)
        .about(
            "approve charts",
            "Let saved charts wait for your approval, with what they would change, or go live at once.",
        )
        .also(&["hold"]), |view, state| ask(view, SourcesTask::HoldCharts { on: !state.hold })),
    views(action("disturb", Do::Disturb, &["g d"], Section::Act)
        .about(
            "inject faults",
            "Inject faults into the calls of the operator's program: stale caches, conflicts, refusals, delays, lost answers.",
        )
        .also(&["inject", "stale", "fault"]), |view, state| open(view, What::Disturbance, state)).when(|_, state| reconciles::can_disturb(state)),
    asks(action("add-rules", Do::AddRules, &["A"], Section::Act)
        .about(
            "add rules",
            "Add the rules that the operator's role lacks to its file; you see the change first.",
        )
        .also(&["rbac"]), |view, _| ask(view, DraftTask::AddRules)).when(act::can_add_rules),
    asks(action("dependencies", Do::FetchDependencies, &["g u"], Section::Act)
        .about("dependencies", "Download what charts of watches.yaml depend on and lack.")
        .also(&["dependency"]), |view, _| ask(view, ProjectTask::FetchDependencies)).when(is_connected),
    views(action("unlock", Do::Unlock, &["U"], Section::Act)
        .about("unlock", "Allow writes to a cluster that is not clearly local, by typing its name."), act::unlock).when(act::can_unlock),
    views(action("freeze", Do::Freeze, &["Z"], Section::Act).about(
        "freeze",
        "Scale a copy of the operator on the cluster to 0 until opdev ends, or give it its replicas back.",
    ), act::freeze).when(act::can_freeze),
    asks(action("reload", Do::Reload, &["R"], Section::Act)
        .about("reload", "Read all files again, as if each had been saved.")
        .footer(&[Pane::Reconciles]), |view, _| ask(view, SourcesTask::Reload)).when(is_connected),
];

/// Those that stand behind them.
static AFTER_TABS: &[Row] = &[
    views(action("next-container", Do::See(See::NextContainer), &["x"], Section::Look)
        .about("container", "Show the logs of the next container alone, and after the last those of all."), change_view::next_container).when(change_view::has_container),
    views(action("previous-logs", Do::See(See::Previous), &["t"], Section::Look)
        .about("before", "Show the pod logs of the runs before the last restarts, or those of now.")
        .also(&["previous"]), change_view::previous_logs),
    views(action("older-version", Do::See(See::OlderVersion), &["<"], Section::Look)
        .about("older", "Show the version of the selected object before this one.")
        .footer(&[Pane::Detail]), |view, state| change_view::step(view, state, false)).when(change_view::has_older),
    views(action("newer-version", Do::See(See::NewerVersion), &[">"], Section::Look)
        .about("newer", "Show the version of the selected object after this one.")
        .footer(&[Pane::Detail]), |view, state| change_view::step(view, state, true)).when(change_view::has_newer),
    views(action("field-owners", Do::See(See::FieldOwners), &["b"], Section::Look)
        .about("owners", "Show who owns each line of the YAML.")
        .also(&["blame", "managers"])
        .footer(&[Pane::Detail]), change_view::field_owners).when(change_view::has_owners),
    views(action("managed-fields", Do::See(See::ManagedFields), &["B"], Section::Look)
        .about("managedFields", "Show managedFields in YAML and history, or fold them."), change_view::managed_fields),
    views(action("fold-log", Do::See(See::FoldLog), &["F"], Section::Look)
        .about("fold", "Show the log by reconcile, by reconcile folded, or as the lines came.")
        .footer(&[Pane::Detail]), change_view::fold_log),
    views(action("deleted", Do::See(See::Deleted), &["X"], Section::Look)
        .about("deleted", "Show objects that were deleted a while ago as they were last, or hide them.")
        .also(&["tombstones"]), |view, _| view.gone = !view.gone).when(change_view::has_deleted),
    views(action("next-tab", Do::NextTab, &["]"], Section::Look)
        .about("next tab", "Show the next tab of the detail pane.")
        .footer(&[Pane::Detail]), |view, _| moves::tab(view, true)),
    views(action("previous-tab", Do::PreviousTab, &["["], Section::Look)
        .about("previous tab", "Show the previous tab of the detail pane."), |view, _| moves::tab(view, false)),
    views(action("scope", Do::Scope, &["o"], Section::Look)
        .about("all objects", "Show reconciles and log of all objects, or of the selected one.")
        .footer(&[Pane::Reconciles]), |view, _| view.all = !view.all),
    views(action("filter", Do::Filter, &["/"], Section::Look)
        .about(
            "filter",
            "Keep lines with all of this: words, !word, /regex/, n:namespace, k:kind, -l label=value.",
        )
        .footer(ALL), |view, _| view.open(FilterLine::of(view))),
    views(action("faults", Do::Seek(Seek::Faults), &["g e"], Section::Look)
        .about("faults only", "Show only custom resources with a fault, or all.")
        .also(&["faults"]), |view, _| view.resources.faults = !view.resources.faults).when(find::can_filter_faults),
    views(action("sort", Do::Seek(Seek::Sort), &["S"], Section::Look)
        .about("sort", "Sort the custom resources by the next column.")
        .footer(&[Pane::Resources]), find::sort),
    views(action("sort-name", Do::Seek(Seek::By(SortKey::Name)), &["N", "g N"], Section::Look)
        .about("sort by name", "Sort the custom resources by name; once more turns the order around."), |view, _| find::sort_by(view, Column::Name)).when(find::can_sort_by),
    views(action("sort-status", Do::Seek(Seek::By(SortKey::Status)), &["g S"], Section::Look)
        .about("sort by status", "Sort the custom resources by status."), |view, _| find::sort_by(view, Column::Status)).when(find::can_sort_by),
    views(action("sort-ready", Do::Seek(Seek::By(SortKey::Ready)), &["g R"], Section::Look)
        .about("sort by ready", "Sort the custom resources by what is ready, the least first."), |view, _| find::sort_by(view, Column::Ready)).when(find::can_sort_by),
    views(action("sort-kind", Do::Seek(Seek::By(SortKey::Kind)), &["g K"], Section::Look)
        .about("sort by kind", "Sort the custom resources by kind, the order of the start."), |view, _| find::sort_by(view, Column::Kind)).when(find::can_sort_by),
    views(action("sort-age", Do::Seek(Seek::By(SortKey::Age)), &["g A"], Section::Look)
        .about("sort by age", "Sort the custom resources by age, the youngest first."), |view, _| find::sort_by(view, Column::Age)).when(find::can_sort_by),
    views(action("turn", Do::Seek(Seek::Turn), &["I"], Section::Look)
        .about("invert order", "Turn the order of the custom resources around.")
        .also(&["invert"]), find::turn).when(find::can_turn),
    views(action("wide", Do::Seek(Seek::Wide), &["W"], Section::Look)
        .about("wide", "Show the columns that the CRD of the selected kind asks for."), |view, _| view.resources.wide = !view.resources.wide).when(find::can_widen),
    views(action("find", Do::Seek(Seek::Text), &["\\"], Section::Look)
        .about("find", "Search in the detail pane, without leaving lines out.")
        .also(&["search"])
        .footer(&[Pane::Detail]), |view, _| view.open(SearchLine::of(view))),
    views(action("find-next", Do::Seek(Seek::Next), &["n"], Section::Look)
        .about("next match", "To the next match, while one searches.")
        .finding(), |view, _| search_step::step(view, true)).when(find::is_searching),
    views(action("find-previous", Do::Seek(Seek::Previous), &["N"], Section::Look)
        .about("previous match", "To the match before, while one searches.")
        .finding(), |view, _| search_step::step(view, false)).when(find::is_searching),
    views(action("log-more", Do::Seek(Seek::MoreLog), &["+"], Section::Look)
        .about("more log", "Show one more level of the log."), |view, _| view.detail.log_level = find::louder(view.detail.log_level)).when(find::can_say_more),
    views(action("log-less", Do::Seek(Seek::LessLog), &["-"], Section::Look)
        .about("less log", "Show one level of the log less."), |view, _| view.detail.log_level = find::quieter(view.detail.log_level)).when(find::can_say_less),
    views(action("hold-log", Do::Seek(Seek::Hold), &["ctrl-s"], Section::Look)
        .about("hold log", "Let the log stand still, or follow it again; new lines are counted.")
        .also(&["scroll-lock"]), find::hold_log),
    views(action("wrap", Do::Wrap, &["w"], Section::Look)
        .about("wrap", "Wrap long lines of the detail pane, or cut them.")
        .footer(&[Pane::Detail]), |view, _| view.detail.wrap = !view.detail.wrap),
    views(action("zoom", Do::Zoom, &["z"], Section::Look)
        .about("zoom", "Give the whole screen to this pane, or share it again.")
        .footer(ALL), |view, _| view.zoom = !view.zoom),
    asks(action("border-left", Do::Border(Side::Left), &["alt-left"], Section::Look).about(
        "border left",
        "Move the border beside this pane to the left; borders stay where they were put.",
    ), |view, _| view.move_border(Side::Left)).when(|view, _| view.border(Side::Left).map(drop)),
    asks(action("border-right", Do::Border(Side::Right), &["alt-right"], Section::Look)
        .about("border right", "Move the border beside this pane to the right.")
        .also(&["resize"]), |view, _| view.move_border(Side::Right)).when(|view, _| view.border(Side::Right).map(drop)),
    asks(action("border-up", Do::Border(Side::Up), &["alt-up"], Section::Look)
        .about("border up", "Move the border above or below this pane up."), |view, _| view.move_border(Side::Up)).when(|view, _| view.border(Side::Up).map(drop)),
    asks(action("border-down", Do::Border(Side::Down), &["alt-down"], Section::Look)
        .about("border down", "Move the border above or below this pane down."), |view, _| view.move_border(Side::Down)).when(|view, _| view.border(Side::Down).map(drop)),
    asks(action("borders-back", Do::Border(Side::Back), &["alt-0"], Section::Look)
        .about("borders back", "Put all borders back to where the content asks for them."), |view, _| view.move_border(Side::Back)).when(|view, _| view.border(Side::Back).map(drop)),
    views(action("back", Do::Back, &["esc"], Section::Look)
        .about("back", "Close, dismiss, clear the filter, leave the zoom: whichever comes first."), moves::back),
    views(action("palette", Do::Seek(Seek::Palette), &[":"], Section::Move)
        .about("commands", "Choose from all actions, namespaces, contexts, themes and kinds.")
        .also(&["palette"])
        .footer(ALL), |view, state| open(view, What::Palette, state)),
    views(action("jump", Do::Seek(Seek::Jump), &["ctrl-p", "g j"], Section::Move)
        .about(
            "jump",
            "Go to any object, kind, reconcile or action, or open any file of the project, by a few letters.",
        )
        .also(&["go"]), |view, state| open(view, What::Jump, state)),
    views(action("namespace", Do::Seek(Seek::Namespace), &["g n"], Section::Move)
        .about("namespace", "Show one namespace, or all.")
        .also(&["ns", "namespaces"]), |view, state| open(view, What::Namespace, state)),
    views(action("all-namespaces", Do::Seek(Seek::AllNamespaces), &["0"], Section::Move)
        .about("all namespaces", "Show all namespaces that opdev runs in."), |view, state| view.show_namespace(None, state)),
    views(action("context", Do::Seek(Seek::Context), &["g c"], Section::Move)
        .about(
            "context",
            "Go on working on another context of the kubeconfig, or on the embedded control plane.",
        )
        .also(&["ctx", "contexts"]), |view, state| open(view, What::Context, state)).when(find::can_choose_context),
    views(action("up", Do::Up, &["k", "up"], Section::Move).about("up", "One line up."), |view, _| view.go(view.at().saturating_sub(1))),
    views(action("down", Do::Down, &["j", "down"], Section::Move).about("down", "One line down."), |view, _| view.go(view.at() + 1)),
    views(action("left", Do::Left, &["left"], Section::Move).about("left", "To the pane or tab on the left."), |view, _| moves::sideways(view, false)),
    views(action("right", Do::Right, &["right"], Section::Move).about("right", "To the pane or tab on the right."), |view, _| moves::sideways(view, true)),
    views(action("page-up", Do::PageUp, &["pgup", "ctrl-b"], Section::Move).about("page up", "One page up."), |view, _| view.go(view.at().saturating_sub(moves::page(view)))),
    views(action("page-down", Do::PageDown, &["pgdn", "ctrl-f"], Section::Move)
        .about("page down", "One page down."), |view, _| view.go(view.at() + moves::page(view))),
    views(action("half-up", Do::HalfUp, &["ctrl-u"], Section::Move).about("half page up", "Half a page up."), |view, _| view.go(view.at().saturating_sub(moves::page(view).div_ceil(2)))),
    views(action("half-down", Do::HalfDown, &["ctrl-d"], Section::Move)
        .about("half page down", "Half a page down."), |view, _| view.go(view.at() + moves::page(view).div_ceil(2))),
    views(action("top", Do::Top, &["g g", "home"], Section::Move).about("top", "To the first line."), |view, _| view.go(0)),
    views(action("bottom", Do::Bottom, &["G", "end"], Section::Move).about("bottom", "To the last line."), |view, _| view.go(view.rows().saturating_sub(1))),
    views(action("next-pane", Do::NextPane, &["tab"], Section::Move).about("next pane", "To the next pane."), |view, _| view.look_at(moves::beside(view, 1))),
    views(action("previous-pane", Do::PreviousPane, &["shift-tab"], Section::Move)
        .about("previous pane", "To the previous pane."), |view, _| view.look_at(moves::beside(view, Pane::COUNT - 1))),
    views(action("pane-1", Do::Pane(Pane::Resources), &["1"], Section::Move)
        .about("resources", "To the custom resources."), |view, _| view.look_at(Pane::Resources)),
    views(action("pane-2", Do::Pane(Pane::Owned), &["2"], Section::Move).about("owned", "To the owned objects."), |view, _| view.look_at(Pane::Owned)),
    views(action("pane-3", Do::Pane(Pane::Reconciles), &["3"], Section::Move)
        .about("reconciles", "To the reconciles."), |view, _| view.look_at(Pane::Reconciles)),
    views(action("pane-4", Do::Pane(Pane::Detail), &["4"], Section::Move).about("detail", "To the detail pane."), |view, _| view.look_at(Pane::Detail)),
    views(action("pane-5", Do::Pane(Pane::Log), &["l", "5"], Section::Move)
        .about("operator log", "To what the operator logs; the log by reconcile is a tab.")
        .also(&["logs"]), |view, _| view.look_at(Pane::Log)),
    views(action("help", Do::Help, &["?"], Section::Program)
        .about("help", "Show all keys; / searches in them.")
        .also(&["h", "keys"])
        .footer(ALL), |view, _| view.open(Help::default())),
    views(action("memory", Do::Memory, &[], Section::Program)
        .about("memory", "Show who holds how much memory, and what was forgotten.")
        .also(&["mem"]), |view, _| view.open(Memory)),
    views(action("theme", Do::Seek(Seek::Theme), &[], Section::Program)
        .about("theme", "Try another theme; the setting `theme` keeps it.")
        .also(&["skin", "colours", "colors"]), |view, state| open(view, What::Theme, state)),
    views(action("mouse", Do::Seek(Seek::Mouse), &["alt-m"], Section::Program)
        .about("mouse", "Click and scroll with the mouse, or leave it to the terminal to select text."), find::turn_mouse),
    asks(action("redraw", Do::Redraw, &["ctrl-l"], Section::Program)
        .about("redraw", "Paint the whole screen anew."), |_, _| vec![Command::Redraw]),
    asks(action("suspend", Do::Suspend, &["ctrl-z"], Section::Program)
        .about("suspend", "Back to the shell; fg returns. The operator stops meanwhile, too."), |_, _| vec![Command::Suspend]),
    asks(action("quit", Do::Quit, &["q"], Section::Program)
        .about("quit", "Stop the operator and leave.")
        .also(&["q", "q!", "exit", "wq"])
        .footer(ALL), leave::quit),
    asks(action("stop", Do::Stop, &["ctrl-c"], Section::Program).about("stop", "Leave, whatever is open."), leave::stop),
];

impl Default for Keymap {
    fn default() -> Self {
        Keymap::of(&ACTIONS)
    }
}
