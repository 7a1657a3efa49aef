//! Fields that versions of one definition lose to each other.

use super::observed::Observed;
use super::words::some_of;
use crate::finding::{Class, Finding, Level};

pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut found = Vec::new();
    for (way, lossy) in &observed.lossy {
        let (name, version, between) = (&way.definition, &way.version, &way.between);
        let object = format!("{name} {version} to {between}");
        if let Some(why) = &lossy.failed {
            let title = format!("{name} cannot be converted from {version} to {between} and back");
            let finding = Finding::new(Level::Error, Class::Conversion, object, title).line(why.clone());
            found.push(finding.fix("convert every object that the schema allows"));
            continue;
        }
        if lossy.fields.is_empty() {
            continue;
        }
        let fields: Vec<String> = lossy.fields.iter().cloned().collect();
        let title = match fields.as_slice() {
            [one] => format!("{name}: {one} of {version} is lost at {between}"),
            some => format!("{name}: {} fields of {version} are lost at {between}", some.len()),
        };
        let what = match way.from_store {
            true => {
                format!("who reads an object at {between} and writes it back takes what users have stored")
            }
            false => format!("what users write at {version} is not stored"),
        };
        found.push(
            Finding::new(Level::Error, Class::Conversion, object, title)
                .line(some_of(&fields, 12))
                .line(what)
                .fields(fields)
                .fix("keep what the other version has no field for in an annotation"),
        );
    }
    found
}
