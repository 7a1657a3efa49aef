//! Moving the borders between panes, by key or by mouse. Where they stand is remembered for the next start.

use crate::act::ask::ask;
use crate::command::Command;
use crate::view::ViewState;
use opdev_event::{Borders, ViewRequest};
use opdev_panes::disabled::NotNow;
use opdev_panes::layout;
use opdev_panes::layout::{Edge, Shape, Side};

/// How far one key moves a border: columns and rows.
const STEP: (u16, u16) = (3, 1);

impl ViewState {
    /// The border that a key moves now; if there is none, why.
    pub(crate) fn border(&self, side: Side) -> Result<Option<Edge>, NotNow> {
        if side == Side::Back {
            let moved = self.screen.borders != Borders::default();
            return if moved { Ok(None) } else { Err("no border was moved".into()) };
        }
        if self.screen.shape == Shape::One || self.zoom {
            return Err("one pane has the whole screen".into());
        }
        let edge = layout::edge_of(self.focus, self.screen.shape, side);
        edge.map(Some).ok_or_else(|| "this pane has no border above or below it that moves".into())
    }

    /// Moves it one step.
    pub(crate) fn move_border(&mut self, side: Side) -> Vec<Command> {
        match self.border(side) {
            Err(_) => return Vec::new(),
            Ok(None) => self.screen.borders = Borders::default(),
            Ok(Some(edge)) => {
                // Keys come faster than frames: what was drawn last may be older than the key before.
                let moved = layout::moved_to(&self.screen.borders, edge, self.screen.body);
                let drawn =
                    || layout::place_of(edge, &self.screen.places, self.screen.shape, self.screen.body);
                let at = moved.unwrap_or_else(drawn);
                let to = match side {
                    Side::Left => at.saturating_sub(STEP.0),
                    Side::Right => at + STEP.0,
                    Side::Up => at.saturating_sub(STEP.1),
                    Side::Down | Side::Back => at + STEP.1,
                };
                layout::put(&mut self.screen.borders, edge, to, self.screen.body);
            }
        }
        self.remember_borders()
    }

    /// Puts the border that the mouse holds to a place of the screen.
    pub(crate) fn drag_border(&mut self, (x, y): (u16, u16)) {
        let Some(edge) = self.screen.dragged else { return };
        let at = match edge {
            Edge::Lists | Edge::Reconciles => x.saturating_sub(self.screen.body.x),
            Edge::Resources | Edge::BelowReconciles | Edge::Log => y.saturating_sub(self.screen.body.y),
        };
        layout::put(&mut self.screen.borders, edge, at, self.screen.body);
    }

    /// Asks for the borders to be kept.
    pub(crate) fn remember_borders(&mut self) -> Vec<Command> {
        ask(self, ViewRequest::Remember { borders: self.screen.borders })
    }
}
