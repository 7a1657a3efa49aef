//! The terminal's background, asked for with OSC 11. The answer comes in among the keys, at once, late or
//! never: it is taken out of them, so that no part of it does what a key does.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::{Duration, Instant};

/// The question.
pub const QUESTION: &str = "\u{1b}]11;?\u{1b}\\";
/// How long the first frame waits for the answer.
pub const WAIT: Duration = Duration::from_millis(100);
/// How long an answer is taken for one; over a slow line it comes late.
const LATEST: Duration = Duration::from_secs(3);
/// Answers are shorter than this.
const LONGEST: usize = 40;
const BEGIN: &str = "11;rgb";

/// The outcome for an event.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// These events are for whoever takes events.
    Events(Vec<Event>),
    /// It belongs to the answer, of which more is to come.
    Part,
    /// The answer is there: whether the background is light.
    Light(bool),
}

/// A question that may still be answered.
#[derive(Debug)]
pub struct Background {
    until: Instant,
    /// The events of an answer that has begun, and its text.
    kept: Vec<Event>,
    text: String,
}

impl Background {
    /// Asked now.
    pub fn asked(now: Instant) -> Self {
        Background { until: now + LATEST, kept: Vec::new(), text: String::new() }
    }

    /// Takes an event of the terminal.
    pub fn take(&mut self, event: Event, now: Instant) -> Taken {
        let Event::Key(key) = &event else { return Taken::Events(vec![event]) };
        if key.kind == KeyEventKind::Release {
            return Taken::Events(vec![event]);
        }
        let begins = is(key, ']', KeyModifiers::ALT);
        if self.kept.is_empty() {
            if now > self.until || !begins {
                return Taken::Events(vec![event]);
            }
            self.kept.push(event);
            return Taken::Part;
        }
        if is(key, '\\', KeyModifiers::ALT) || is(key, 'g', KeyModifiers::CONTROL) {
            if let Some(light) = is_light(&self.text) {
                self.kept.clear();
                self.until = now;
                return Taken::Light(light);
            }
            return self.give_back(event);
        }
        match key.code {
            KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::CONTROL) => {
                self.text.push(c);
                let fits = self.text.starts_with(BEGIN) || BEGIN.starts_with(&self.text);
                if !fits || self.text.len() > LONGEST {
                    return self.give_back(event);
                }
                self.kept.push(event);
                Taken::Part
            }
            _ => self.give_back(event),
        }
    }

    /// It was no answer: somebody typed it.
    fn give_back(&mut self, event: Event) -> Taken {
        let mut events = std::mem::take(&mut self.kept);
        self.text.clear();
        events.push(event);
        Taken::Events(events)
    }
}

fn is(key: &KeyEvent, c: char, with: KeyModifiers) -> bool {
    key.code == KeyCode::Char(c) && key.modifiers == with
}

/// Returns true if `11;rgb:1e1e/1e1e/2e2e` is light.
fn is_light(answer: &str) -> Option<bool> {
    let (_, channels) = answer.strip_prefix(BEGIN)?.split_once(':')?;
    let channel = |text: &str| {
        let value = u32::from_str_radix(text, 16).ok().filter(|_| (1..=4).contains(&text.len()))?;
        Some(f64::from(value) / f64::from((1_u32 << (4 * text.len())) - 1))
    };
    let mut channels = channels.split('/').map(channel);
    let (red, green, blue) = (channels.next()??, channels.next()??, channels.next()??);
    Some(0.299 * red + 0.587 * green + 0.114 * blue > 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(c: char, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(c), modifiers))
    }

    fn typed(text: &str) -> Vec<Event> {
        let mut events = vec![key(']', KeyModifiers::ALT)];
        events.extend(text.chars().map(|c| key(c, KeyModifiers::NONE)));
        events
    }

    #[test]
    fn an_answer_is_no_key_whenever_it_comes() {
        let begun = Instant::now();
        for (text, end, light) in [
            ("11;rgb:1e1e/1e1e/2e2e", key('\\', KeyModifiers::ALT), false),
            ("11;rgb:ffff/fafa/eeee", key('g', KeyModifiers::CONTROL), true),
            ("11;rgba:ff/ff/ff/ff", key('\\', KeyModifiers::ALT), true),
        ] {
            let mut background = Background::asked(begun);
            let at = begun + Duration::from_secs(2);
            for event in typed(text) {
                assert_eq!(background.take(event, at), Taken::Part);
            }
            assert_eq!(background.take(end, at), Taken::Light(light), "{text}");
            let next = key('r', KeyModifiers::NONE);
            assert_eq!(background.take(next.clone(), at), Taken::Events(vec![next]));
        }
    }

    #[test]
    fn what_somebody_types_is_never_lost() {
        let begun = Instant::now();
        let mut background = Background::asked(begun);
        let mut out = Vec::new();
        let events: Vec<Event> = typed("1x").into_iter().chain(typed("q")).collect();
        for event in events.clone() {
            if let Taken::Events(more) = background.take(event, begun) {
                out.extend(more);
            }
        }
        assert_eq!(out, events);
        let late = begun + LATEST + Duration::from_millis(1);
        let first = typed("").remove(0);
        assert_eq!(background.take(first.clone(), late), Taken::Events(vec![first]));
    }
}
