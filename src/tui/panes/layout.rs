//! Where the panes stand: one at a time, two above each other, in two columns, or in three; and where the
//! user moved the borders between them. Pure: the size of the screen goes in, rectangles come out. Rows never
//! do: a new object, a new reconcile or a longer name moves no border.

use super::pane::Pane;
use opdev_event::Borders;
use ratatui::layout::Rect;

/// How the panes stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// One pane at a time, with a bar of tabs.
    #[default]
    One,
    /// A list above, reconciles or the detail pane below; a page has the whole body.
    Stacked,
    /// Lists on the left; reconciles above the detail pane on the right.
    Two,
    /// Two columns, and the operator log below the lists.
    Logged,
    /// Lists; reconciles above the operator log; detail: a selection changes only what is right of it.
    Three,
}

/// From these sizes on: width and height.
const STACKED: (u16, u16) = (60, 16);
const TWO: (u16, u16) = (96, 28);
const LOGGED: (u16, u16) = (160, 40);
const THREE: (u16, u16) = (192, 40);
/// No pane gets smaller than this.
const LEAST: (u16, u16) = (30, 5);
/// The detail pane beside two other columns, and those beside it.
const LEAST_DETAIL: u16 = 62;
const MIDDLE: u16 = 64;

impl Shape {
    /// For a screen of this size.
    pub fn of(width: u16, height: u16) -> Shape {
        let from = |least: (u16, u16)| width >= least.0 && height >= least.1;
        match () {
            () if from(THREE) => Shape::Three,
            () if from(LOGGED) => Shape::Logged,
            () if from(TWO) => Shape::Two,
            () if from(STACKED) => Shape::Stacked,
            () => Shape::One,
        }
    }

    /// Returns true if a page has the whole body.
    pub fn has_pages(self) -> bool {
        matches!(self, Shape::One | Shape::Stacked)
    }

    /// Returns true if the operator log has a pane of its own.
    pub fn has_log(self) -> bool {
        matches!(self, Shape::Logged | Shape::Three)
    }
}

/// A border between panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Right of the lists.
    Lists,
    /// Right of the reconciles; only with three columns.
    Reconciles,
    /// Below the custom resources.
    Resources,
    /// Below the reconciles.
    BelowReconciles,
    /// Above the operator log, where that stands below the lists.
    Log,
}

/// Where a border goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// To the left.
    Left,
    /// To the right.
    Right,
    /// Up.
    Up,
    /// Down.
    Down,
    /// Back to where it stands by itself; all of them.
    Back,
}

/// A part of a length, in thousandths.
fn part(length: u16, thousandths: u16) -> u16 {
    let cells = (u32::from(length) * u32::from(thousandths) + 500) / 1000;
    u16::try_from(cells).unwrap_or(length)
}

fn thousandths(cells: u16, length: u16) -> u16 {
    let length = u32::from(length.max(1));
    u16::try_from((u32::from(cells) * 1000 + length / 2) / length).unwrap_or(1000)
}

/// A place for a border that leaves both sides their least size.
fn within(at: u16, least: u16, length: u16) -> u16 {
    at.clamp(least.min(length / 2), length.saturating_sub(least).max(length / 2))
}

/// A part of the height of the screen, rounded.
fn share(height: u16, of: u16) -> u16 {
    (height + of / 2) / of
}

/// The list and the pane below it that are in sight while two panes share the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub upper: Pane,
    pub lower: Pane,
}

/// The areas of the panes in the order of `Pane::ALL`; empty where one is not shown. Neighbours share a
/// border, so each pane is one row or column larger than its share. The header and the footer are not in the
/// body.
pub fn areas(body: Rect, shape: Shape, pair: Pair, borders: &Borders) -> [Rect; Pane::COUNT] {
    let (width, height) = (body.width, body.height);
    let screen = height + 2;
    let at = |x: u16, y: u16, w: u16, h: u16| Rect { x: body.x + x, y: body.y + y, width: w, height: h };
    let row = |moved: Option<u16>, own: u16, least: u16| {
        let most = height.saturating_sub(least).max(height / 2);
        let least = LEAST.1.min(height / 2);
        moved.map_or(own, |moved| part(height, moved)).clamp(least, most.max(least))
    };
    let mut all = [Rect::default(); Pane::COUNT];
    if shape <= Shape::Stacked {
        // The heading of the columns and the upper border are rows, too.
        let upper = row(borders.resources, share(screen, 5).clamp(4, 6) + 2, 8);
        all[pair.upper.index()] = at(0, 0, width, upper + 1);
        all[pair.lower.index()] = at(0, upper, width, height - upper);
        return all;
    }
    let own = (u32::from(width) * 48 / 100).clamp(46, 66);
    let own = u16::try_from(own).unwrap_or(66) - 1;
    let lists = within(borders.lists.map_or(own, |moved| part(width, moved)), LEAST.0, width);
    // Two more columns have to fit beside it.
    let lists = if shape == Shape::Three { lists.min(width - 2 * LEAST.0) } else { lists };
    let resources = row(borders.resources, share(screen, 5).clamp(4, 12) + 2, 8);
    all[Pane::Resources.index()] = at(0, 0, lists + 1, resources + 1);
    if shape == Shape::Logged {
        let below = height - resources;
        let owned = borders.log.map_or(resources + share(screen, 3), |moved| part(height, moved));
        let owned = owned.clamp(resources + LEAST.1.min(below / 2), height - LEAST.1.min(below / 2));
        all[Pane::Owned.index()] = at(0, resources, lists + 1, owned - resources + 1);
        all[Pane::Log.index()] = at(0, owned, lists + 1, height - owned);
    } else {
        all[Pane::Owned.index()] = at(0, resources, lists + 1, height - resources);
    }
    if shape == Shape::Three {
        let own = (lists + MIDDLE).min(width.saturating_sub(LEAST_DETAIL)).max(lists + LEAST.0);
        let middle = borders.reconciles.map_or(own, |moved| part(width, moved));
        let middle = middle.clamp(lists + LEAST.0, width.saturating_sub(LEAST.0).max(lists + LEAST.0));
        let reconciles = row(borders.below_reconciles, height / 2, 8);
        all[Pane::Reconciles.index()] = at(lists, 0, middle - lists + 1, reconciles + 1);
        all[Pane::Log.index()] = at(lists, reconciles, middle - lists + 1, height - reconciles);
        all[Pane::Detail.index()] = at(middle, 0, width - middle, height);
        return all;
    }
    let reconciles = row(borders.below_reconciles, share(screen, 4).clamp(6, 14) + 2, 10);
    all[Pane::Reconciles.index()] = at(lists, 0, width - lists, reconciles + 1);
    all[Pane::Detail.index()] = at(lists, reconciles, width - lists, height - reconciles);
    all
}

/// The border that a key moves while a pane has the focus; none where that pane has no such border.
pub fn edge_of(focus: Pane, shape: Shape, side: Side) -> Option<Edge> {
    let upright = matches!(side, Side::Left | Side::Right);
    match (shape, focus, upright) {
        (Shape::One, _, _) | (Shape::Stacked, _, true) => None,
        (Shape::Stacked, _, false) => Some(Edge::Resources),
        (Shape::Three, Pane::Reconciles | Pane::Detail | Pane::Log, true) => Some(Edge::Reconciles),
        (Shape::Two | Shape::Logged | Shape::Three, _, true) => Some(Edge::Lists),
        (Shape::Logged, Pane::Log, false) => Some(Edge::Log),
        (_, Pane::Resources | Pane::Owned, false) => Some(Edge::Resources),
        (Shape::Three, Pane::Detail, false) => None,
        (_, Pane::Reconciles | Pane::Detail | Pane::Log, false) => Some(Edge::BelowReconciles),
    }
}

/// Where a border stands, counted from the left or the top of all panes.
pub fn place_of(edge: Edge, places: &[Rect; Pane::COUNT], shape: Shape, body: Rect) -> u16 {
    let place = |pane: Pane| places[pane.index()];
    match edge {
        Edge::Lists => place(Pane::Reconciles).x.saturating_sub(body.x),
        Edge::Reconciles => place(Pane::Detail).x.saturating_sub(body.x),
        Edge::Resources if shape == Shape::Stacked => {
            place(Pane::Reconciles).y.max(place(Pane::Detail).y).saturating_sub(body.y)
        }
        Edge::Resources => place(Pane::Owned).y.saturating_sub(body.y),
        Edge::BelowReconciles if shape == Shape::Three => place(Pane::Log).y.saturating_sub(body.y),
        Edge::BelowReconciles => place(Pane::Detail).y.saturating_sub(body.y),
        Edge::Log => place(Pane::Log).y.saturating_sub(body.y),
    }
}

/// Where the user has put a border, counted as `place_of` does; none where it was not moved.
pub fn moved_to(borders: &Borders, edge: Edge, body: Rect) -> Option<u16> {
    match edge {
        Edge::Lists => borders.lists.map(|moved| part(body.width, moved)),
        Edge::Reconciles => borders.reconciles.map(|moved| part(body.width, moved)),
        Edge::Resources => borders.resources.map(|moved| part(body.height, moved)),
        Edge::BelowReconciles => borders.below_reconciles.map(|moved| part(body.height, moved)),
        Edge::Log => borders.log.map(|moved| part(body.height, moved)),
    }
}

/// Puts a border at a column or a row, counted as `place_of` does.
pub fn put(borders: &mut Borders, edge: Edge, at: u16, body: Rect) {
    let (moved, length, least) = match edge {
        Edge::Lists => (&mut borders.lists, body.width, LEAST.0),
        Edge::Reconciles => (&mut borders.reconciles, body.width, LEAST.0),
        Edge::Resources => (&mut borders.resources, body.height, LEAST.1),
        Edge::BelowReconciles => (&mut borders.below_reconciles, body.height, LEAST.1),
        Edge::Log => (&mut borders.log, body.height, LEAST.1),
    };
    *moved = Some(thousandths(within(at, least, length), length));
}

/// The border at a place of the screen.
pub fn edge_at((x, y): (u16, u16), shape: Shape, places: &[Rect; Pane::COUNT], body: Rect) -> Option<Edge> {
    let place = |edge: Edge| place_of(edge, places, shape, body);
    let upright = |edge: Edge| body.x + place(edge) == x;
    let level = |edge: Edge| body.y + place(edge) == y;
    if y < body.y || y >= body.bottom() || shape == Shape::One {
        return None;
    }
    let left = shape == Shape::Stacked || x < body.x + place(Edge::Lists);
    let middle = shape != Shape::Three || x < body.x + place(Edge::Reconciles);
    let edges: &[Edge] = match shape {
        Shape::One => &[],
        Shape::Stacked => &[Edge::Resources],
        _ if upright(Edge::Lists) => return Some(Edge::Lists),
        Shape::Three if upright(Edge::Reconciles) => return Some(Edge::Reconciles),
        Shape::Logged if left => &[Edge::Resources, Edge::Log],
        _ if left => &[Edge::Resources],
        _ if middle => &[Edge::BelowReconciles],
        _ => &[],
    };
    edges.iter().copied().find(|edge| level(*edge))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: [Pair; 2] = [
        Pair { upper: Pane::Resources, lower: Pane::Reconciles },
        Pair { upper: Pane::Owned, lower: Pane::Detail },
    ];

    #[test]
    fn panes_cover_the_body_and_share_borders_at_every_size() {
        for width in (60..=400).step_by(7) {
            for height in 16..=80 {
                for moved in [None, Some(0), Some(333), Some(1000)] {
                    let borders = Borders {
                        lists: moved,
                        reconciles: moved,
                        resources: moved,
                        below_reconciles: moved,
                        log: moved,
                    };
                    for pair in PAIRS {
                        let body = Rect { x: 0, y: 1, width, height: height - 2 };
                        let all = areas(body, Shape::of(width, height), pair, &borders);
                        let mut hit = vec![0_u8; usize::from(width) * usize::from(body.height)];
                        for area in all.into_iter().filter(|area| area.area() > 0) {
                            assert!(area.width >= 20 && area.height >= 3, "{area:?} of {body:?} {moved:?}");
                            assert_eq!(area.union(body), body, "{area:?}");
                            for y in area.top()..area.bottom() {
                                for x in area.left()..area.right() {
                                    hit[usize::from(y - 1) * usize::from(width) + usize::from(x)] += 1;
                                }
                            }
                        }
                        assert!(hit.iter().all(|n| *n > 0), "a hole in {width}x{height} {moved:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_moved_border_goes_where_it_was_put_and_stays_in_proportion() {
        for (width, height) in [(80, 24), (96, 40), (120, 40), (133, 40), (170, 44), (200, 50), (317, 60)] {
            let body = Rect { x: 0, y: 1, width, height: height - 2 };
            let shape = Shape::of(width, height);
            let mut borders = Borders::default();
            let edges: &[Edge] = match shape {
                Shape::One => &[],
                Shape::Stacked => &[Edge::Resources],
                Shape::Two => &[Edge::Lists, Edge::Resources, Edge::BelowReconciles],
                Shape::Logged => &[Edge::Lists, Edge::Resources, Edge::BelowReconciles, Edge::Log],
                Shape::Three => &[Edge::Lists, Edge::Reconciles, Edge::Resources, Edge::BelowReconciles],
            };
            for edge in edges {
                let before = areas(body, shape, PAIRS[0], &borders);
                let at = place_of(*edge, &before, shape, body);
                put(&mut borders, *edge, at + 1, body);
                let after = areas(body, shape, PAIRS[0], &borders);
                assert_eq!(place_of(*edge, &after, shape, body), at + 1, "{edge:?} {width}");
                let upright = matches!(edge, Edge::Lists | Edge::Reconciles);
                let beside = match edge {
                    Edge::Lists | Edge::Resources | Edge::Log => 5,
                    Edge::Reconciles | Edge::BelowReconciles => {
                        place_of(Edge::Lists, &after, shape, body) + 5
                    }
                };
                let spot = if upright { (at + 1, body.y + 9) } else { (beside, body.y + at + 1) };
                assert_eq!(edge_at(spot, shape, &after, body), Some(*edge), "{edge:?} {width}");
            }
        }
    }
}
