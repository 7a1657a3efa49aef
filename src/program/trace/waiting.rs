//! Notices about what the program tells: of a read that waits, and of records that are lost.

use jiff::Timestamp;
use opdev_event::{Event, Level, Notice};
use opdev_facts::record::CacheRead;
use opdev_facts::record::fields::reference;
use opdev_object::meta::ObjectRef;

/// A read of a reconcile waits for longer than a moment.
pub(crate) fn told(at: Timestamp, of: Option<&ObjectRef>, read: &CacheRead) -> Event {
    let object = reference(&read.object);
    let what = match read.verb.as_str() {
        "list" => format!("list of {}s", object.gvk.kind),
        _ => format!("read of {object}"),
    };
    let whose = of.map_or_else(|| "a reconcile".to_owned(), |object| format!("the reconcile of {object}"));
    notice(
        at,
        &format!("{whose} waits: its {what} waits until the cache has what the program wrote itself"),
        "EnableReadYourWritesConsistency asks for that; it goes on with the event of that write, which hold may keep back",
    )
}

pub(crate) fn notice(at: Timestamp, message: &str, hint: &str) -> Event {
    let (message, hint) = (message.to_owned(), Some(hint.to_owned()));
    Event::Noticed(Notice { at, level: Level::Warn, message, hint, object: None })
}
