//! Notices about the operator's program.

use crate::event::sink::EventSink;
use crate::event::{Event, Level, Notice};
use jiff::Timestamp;

/// Says something with what to do about it.
pub(crate) async fn tell(events: &EventSink, level: Level, message: String, hint: Option<String>) {
    events.emit(Event::Noticed(Notice { at: Timestamp::now(), level, message, hint, object: None })).await;
}
