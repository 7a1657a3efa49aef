//! Notices about the operator's program.

use jiff::Timestamp;
use opdev_event::sink::EventSink;
use opdev_event::{Event, Level, Notice};

/// Says something with what to do about it.
pub(crate) async fn tell(events: &EventSink, level: Level, message: String, hint: Option<String>) {
    events.emit(Event::Noticed(Notice { at: Timestamp::now(), level, message, hint, object: None })).await;
}
