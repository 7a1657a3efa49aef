//! Parts of the first line: which of them stay where there is little room.

use crate::text::width;
use crate::theme::Role;

/// Parts with this never give way.
pub const ALWAYS: u8 = 9;
/// The width that a cut name keeps.
pub const LEAST_NAME: usize = 12;

/// A part of the left side.
pub struct HeaderPart {
    /// The separator from the part before.
    pub join: &'static str,
    pub role: Role,
    pub text: String,
    /// The lowest one gives way first.
    pub keep: u8,
    /// True if it may be cut in the middle where nothing else helps.
    pub long: bool,
}

/// The parts that stay, and the words for the save: the longest only beside all parts; others before a name
/// is cut.
pub fn fitting(parts: Vec<HeaderPart>, texts: &[String], cells: usize) -> (Vec<HeaderPart>, String) {
    let levels = |parts: &[HeaderPart]| {
        let mut all: Vec<u8> = parts.iter().map(|part| part.keep).filter(|keep| *keep < ALWAYS).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let levels = levels(&parts);
    for (at, text) in texts.iter().enumerate() {
        let most = if at == 0 && texts.len() > 3 { 0 } else { levels.len() };
        for dropped in 0..=most {
            let least = dropped.checked_sub(1).map_or(0, |last| levels[last] + 1);
            let shown = parts.iter().filter(|part| part.keep >= least);
            let shown: usize = shown.enumerate().map(|(i, part)| size(i, part)).sum();
            if shown + width(text) + 3 <= cells {
                return (parts.into_iter().filter(|part| part.keep >= least).collect(), text.clone());
            }
        }
    }
    // Names are cut now, and where even that does not help, a sign says it.
    let parts: Vec<HeaderPart> = parts.into_iter().filter(|part| part.keep >= ALWAYS).collect();
    let gives = |part: &HeaderPart| if part.long { width(&part.text).saturating_sub(LEAST_NAME) } else { 0 };
    let least = used(&parts) - parts.iter().map(gives).sum::<usize>();
    let sign = || texts.last().and_then(|text| text.split(' ').next()).unwrap_or_default().to_owned();
    let text = texts.iter().find(|text| least + width(text) + 3 <= cells).cloned().unwrap_or_else(sign);
    (parts, text)
}

fn size(at: usize, part: &HeaderPart) -> usize {
    let join = if at == 0 { 1 } else { width(part.join) };
    join + width(&part.text)
}

/// The width of some parts.
pub fn used(parts: &[HeaderPart]) -> usize {
    parts.iter().enumerate().map(|(i, part)| size(i, part)).sum()
}
