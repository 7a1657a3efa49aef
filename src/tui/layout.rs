//! Where the panes stand: one at a time, in two columns, or in three; and where the user moved the borders between them.
//! Pure: the size of the screen and what the lists ask for go in, rectangles come out.

use super::pane::Pane;
use crate::event::Borders;
use ratatui::layout::Rect;

/// How many panes stand beside each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shape {
    /// One pane at a time, with a bar of tabs.
    #[default]
    One,
    /// Lists on the left; reconciles above the detail pane on the right.
    Two,
    /// Lists, reconciles, detail: a selection changes only what is right of it.
    Three,
}

/// From this size on there are two columns: width and height.
const TWO: (u16, u16) = (90, 24);
/// From this width on there are three.
const THREE: u16 = 160;
/// No pane gets smaller than this.
const LEAST: (u16, u16) = (30, 5);

impl Shape {
    /// For a screen of this size.
    pub(super) fn of(width: u16, height: u16) -> Shape {
        match (width, height) {
            (THREE.., TWO_HEIGHT..) => Shape::Three,
            (TWO_WIDTH.., TWO_HEIGHT..) => Shape::Two,
            _ => Shape::One,
        }
    }
}

const TWO_WIDTH: u16 = TWO.0;
const TWO_HEIGHT: u16 = TWO.1;

/// A border between panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// Right of the lists.
    Lists,
    /// Right of the reconciles; only with three columns.
    Reconciles,
    /// Below the custom resources.
    Resources,
    /// Below the reconciles; only with two columns.
    Passes,
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

/// The areas of the four panes in the order of `Pane::ALL`. Neighbours share a border, so each pane is one row or
/// column larger than its share. `asked` is how many columns the lists need, with their border.
pub(super) fn areas(body: Rect, shape: Shape, asked: u16, borders: &Borders) -> [Rect; 4] {
    let (width, height) = (body.width, body.height);
    let at = |x: u16, y: u16, w: u16, h: u16| Rect { x: body.x + x, y: body.y + y, width: w, height: h };
    let own = match shape {
        Shape::One | Shape::Two => asked.clamp((width * 2 / 5).min(40), (width / 2).max(1)),
        Shape::Three => asked.clamp(40, width * 32 / 100),
    };
    let lists = within(borders.lists.map_or(own, |moved| part(width, moved)), LEAST.0, width);
    // Two more columns have to fit beside it.
    let lists = if shape == Shape::Three { lists.min(width - 2 * LEAST.0) } else { lists };
    let rows = |moved: Option<u16>| {
        let own = (height * 2 / 5).max(6);
        within(moved.map_or(own, |moved| part(height, moved)), LEAST.1, height)
    };
    let resources = rows(borders.resources);
    let upper = at(0, 0, lists, resources + 1);
    let lower = at(0, resources, lists, height - resources);
    let rest = width - lists + 1;
    if shape == Shape::Three {
        let own = lists + rest * 46 / 100;
        let middle = borders.reconciles.map_or(own, |moved| part(width, moved));
        let middle = middle.clamp(lists + LEAST.0, width.saturating_sub(LEAST.0).max(lists + LEAST.0));
        return [
            upper,
            lower,
            at(lists - 1, 0, middle - lists + 1, height),
            at(middle - 1, 0, width - middle + 1, height),
        ];
    }
    let passes = rows(borders.passes);
    [upper, lower, at(lists - 1, 0, rest, passes + 1), at(lists - 1, passes, rest, height - passes)]
}

/// The border that a key moves while a pane has the focus; none where that pane has no such border.
pub(super) fn edge_of(focus: Pane, shape: Shape, side: Side) -> Option<Edge> {
    let upright = matches!(side, Side::Left | Side::Right);
    match (shape, focus, upright) {
        (Shape::One, _, _) => None,
        (Shape::Three, Pane::Reconciles | Pane::Detail, true) => Some(Edge::Reconciles),
        (_, _, true) => Some(Edge::Lists),
        (_, Pane::Resources | Pane::Owned, false) => Some(Edge::Resources),
        (Shape::Two, Pane::Reconciles | Pane::Detail, false) => Some(Edge::Passes),
        (Shape::Three, Pane::Reconciles | Pane::Detail, false) => None,
    }
}

/// Where a border stands, counted from the left or the top of all panes.
pub(super) fn place_of(edge: Edge, places: &[Rect; 4], body: Rect) -> u16 {
    let place = |pane: Pane| places[pane.index()];
    match edge {
        Edge::Lists => place(Pane::Resources).right().saturating_sub(body.x),
        Edge::Reconciles => place(Pane::Reconciles).right().saturating_sub(body.x),
        Edge::Resources => place(Pane::Owned).y.saturating_sub(body.y),
        Edge::Passes => place(Pane::Detail).y.saturating_sub(body.y),
    }
}

/// Where the user has put a border, counted as `place_of` does; none where it was not moved.
pub(super) fn moved_to(borders: &Borders, edge: Edge, body: Rect) -> Option<u16> {
    match edge {
        Edge::Lists => borders.lists.map(|moved| part(body.width, moved)),
        Edge::Reconciles => borders.reconciles.map(|moved| part(body.width, moved)),
        Edge::Resources => borders.resources.map(|moved| part(body.height, moved)),
        Edge::Passes => borders.passes.map(|moved| part(body.height, moved)),
    }
}

/// Puts a border at a column or a row, counted as `place_of` does.
pub(super) fn put(borders: &mut Borders, edge: Edge, at: u16, body: Rect) {
    let (moved, length, least) = match edge {
        Edge::Lists => (&mut borders.lists, body.width, LEAST.0),
        Edge::Reconciles => (&mut borders.reconciles, body.width, LEAST.0),
        Edge::Resources => (&mut borders.resources, body.height, LEAST.1),
        Edge::Passes => (&mut borders.passes, body.height, LEAST.1),
    };
    *moved = Some(thousandths(within(at, least, length), length));
}

/// The border at a place of the screen.
pub(super) fn edge_at((x, y): (u16, u16), shape: Shape, places: &[Rect; 4], body: Rect) -> Option<Edge> {
    let upright = |edge: Edge| body.x + place_of(edge, places, body) == x + 1;
    let level = |edge: Edge| body.y + place_of(edge, places, body) == y;
    let inside = y >= body.y && y < body.bottom();
    match shape {
        Shape::One => None,
        _ if !inside => None,
        Shape::Two | Shape::Three if upright(Edge::Lists) => Some(Edge::Lists),
        Shape::Three if upright(Edge::Reconciles) => Some(Edge::Reconciles),
        _ if x + 1 < body.x + place_of(Edge::Lists, places, body) => {
            level(Edge::Resources).then_some(Edge::Resources)
        }
        Shape::Two => level(Edge::Passes).then_some(Edge::Passes),
        Shape::Three => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panes_cover_the_body_and_share_borders_at_every_size() {
        for width in (90..=400).step_by(7) {
            for height in 20..=80 {
                for moved in [None, Some(0), Some(333), Some(1000)] {
                    let borders =
                        Borders { lists: moved, reconciles: moved, resources: moved, passes: moved };
                    for asked in [0, 52, 500] {
                        let body = Rect { x: 0, y: 1, width, height };
                        let shape = Shape::of(width, height + 4);
                        let all = areas(body, shape, asked, &borders);
                        let mut hit = vec![0_u8; usize::from(width) * usize::from(height)];
                        for area in all {
                            assert!(area.width >= 20 && area.height >= 4, "{area:?} of {body:?} {moved:?}");
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
        for width in [90, 120, 133, 200, 317] {
            let body = Rect { x: 0, y: 1, width, height: 40 };
            let shape = Shape::of(width, 43);
            let mut borders = Borders::default();
            let before = areas(body, shape, 52, &borders);
            for edge in [Edge::Lists, Edge::Resources] {
                let at = place_of(edge, &before, body);
                put(&mut borders, edge, at + 1, body);
                assert_eq!(
                    place_of(edge, &areas(body, shape, 52, &borders), body),
                    at + 1,
                    "{edge:?} {width}"
                );
            }
            let x = body.x + place_of(Edge::Lists, &before, body) - 1;
            assert_eq!(edge_at((x, 9), shape, &before, body), Some(Edge::Lists));
        }
    }
}
