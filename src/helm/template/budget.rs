//! The budget of one render: statements and calls, keys and passwords, and the bytes of what its functions
//! make, which are charged before they are made. The limits are ten times what the charts of the largest
//! projects need.

use super::value::{Elem, Value};

/// No chart comes near; Helm itself would go on for hours.
const MAX_STEPS: u64 = 10_000_000;

/// How many statements the call of a function counts for: some take microseconds.
const CALL: u64 = 4;

/// Bytes that all functions of a render make.
const MAX_MADE: u64 = 1 << 30;

/// Keys, certificates and passwords that are made slowly; a key of 2048 bits counts for one.
const MAX_KEYS: u64 = 600;

/// The most that one value comes to when it is written, and the longest output of a template.
pub(super) const MAX_BYTES: usize = 128 << 20;

/// How deep a value may be where all of it is read; a map that holds itself has no end.
const MAX_LEVELS: usize = 1_000;

/// Bytes of an item of a list, with what the allocator takes.
pub(super) const ITEM: usize = 64;

/// Bytes of an entry of a map, with what the allocator takes.
pub(super) const ENTRY: usize = 128;

/// Why a value cannot be read as a whole.
pub(super) const DEEP: &str = "a value is more than 1000 levels deep, or holds itself";
const LARGE: &str = "a value is larger than 128 MiB";
const MUCH: &str = "the functions of one render make more than 1 GiB";
const STEPS: &str = "the templates of one render run for more than 10000000 steps";
const READS: &str = "the functions of one render read too much text";
const KEYS: &str = "one render makes more than 600 keys, certificates and passwords";

/// Part of what one render has taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    steps: u64,
    made: u64,
    keys: u64,
}

impl Spent {
    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Spent) -> Spent {
        Spent { steps: self.steps + other.steps, made: self.made + other.made, keys: self.keys + other.keys }
    }

    /// Returns true if one render may take that much.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self.steps <= MAX_STEPS && self.made <= MAX_MADE && self.keys <= MAX_KEYS
    }
}

/// The counters of a render.
#[derive(Default)]
pub(super) struct Budget {
    spent: Spent,
    /// Bytes that the function which is running has charged so far.
    charged: usize,
}

/// The charge of the function that called another one.
#[must_use]
#[derive(Clone, Copy)]
pub(super) struct Outer(usize);

impl Budget {
    pub(super) fn spent(&self) -> Spent {
        self.spent
    }

    pub(super) fn steps(&self) -> u64 {
        self.spent.steps
    }

    /// Counts a statement or a round of a loop.
    pub(super) fn step(&mut self) -> Result<(), &'static str> {
        self.spent.steps += 1;
        if self.spent.steps > MAX_STEPS { Err(STEPS) } else { Ok(()) }
    }

    /// Counts text that a function is about to read, in steps.
    pub(super) fn reads(&mut self, steps: u64) -> Result<(), &'static str> {
        self.spent.steps = self.spent.steps.saturating_add(steps);
        if self.spent.steps > MAX_STEPS { Err(READS) } else { Ok(()) }
    }

    /// Counts keys that a function is about to make.
    pub(super) fn keys(&mut self, keys: u64) -> Result<(), &'static str> {
        self.spent.keys += keys;
        if self.spent.keys > MAX_KEYS { Err(KEYS) } else { Ok(()) }
    }

    /// Begins the call of a function.
    pub(super) fn begin(&mut self) -> Outer {
        self.spent.steps += CALL;
        Outer(std::mem::take(&mut self.charged))
    }

    /// Charges what a function is about to make: so many bytes altogether, with what it has charged before.
    pub(super) fn makes(&mut self, bytes: usize) -> Result<(), &'static str> {
        if bytes <= self.charged {
            return Ok(());
        }
        if bytes > MAX_BYTES {
            return Err(LARGE);
        }
        self.spent.made += (bytes - self.charged) as u64;
        self.charged = bytes;
        if self.spent.made > MAX_MADE { Err(MUCH) } else { Ok(()) }
    }

    /// Charges what stays after the call in a value that was there before it.
    pub(super) fn keeps(&mut self, bytes: usize) -> Result<(), &'static str> {
        self.spent.made += bytes as u64;
        if self.spent.made > MAX_MADE { Err(MUCH) } else { Ok(()) }
    }

    /// Charges what a function has made as far as it was not charged before, and gives back what was charged
    /// too much.
    pub(super) fn ends(&mut self, outer: Outer, value: &Value) -> Result<(), &'static str> {
        let own = own_size(value);
        let ended = self.makes(own);
        let holds_others = own > 0 && matches!(value, Value::List(_) | Value::Map(_));
        if !holds_others {
            self.spent.made -= (self.charged - own.min(self.charged)) as u64;
        }
        self.charged = outer.0;
        ended
    }
}

/// Bytes of a value that a function has made itself; nothing for one that somebody else holds, too.
fn own_size(value: &Value) -> usize {
    match value {
        Value::Str(text) if text.is_shared() => 0,
        Value::Str(text) => text.len(),
        Value::List(list) if list.is_shared() => 0,
        Value::List(list) if list.elem() == Elem::Byte => list.len(),
        Value::List(list) => ITEM / 2 * list.len(),
        Value::Map(map) if map.is_shared() => 0,
        Value::Map(map) => ENTRY / 2 * map.peek_all().len(),
        _ => 0,
    }
}

/// Counts down from `left` what a value comes to when it is written, lines indented.
fn fits(value: &Value, left: &mut usize, level: usize) -> Result<(), &'static str> {
    let mut take = |bytes: usize| -> Result<(), &'static str> {
        *left = left.checked_sub(bytes).ok_or(LARGE)?;
        Ok(())
    };
    match value {
        Value::Str(text) => take(32 + text.len()),
        Value::List(list) if list.elem() == Elem::Byte => take(32 + 4 * list.len()),
        Value::List(list) => {
            take(ITEM)?;
            list.items().iter().try_for_each(|item| below(item, left, level, 0))
        }
        Value::Map(map) => {
            take(ITEM)?;
            map.peek_all().iter().try_for_each(|(key, item)| below(item, left, level, key.len()))
        }
        Value::Host(host) => take(32 + 4 * host.weight()),
        _ => take(32),
    }
}

/// Counts a value inside another one.
fn below(value: &Value, left: &mut usize, level: usize, key: usize) -> Result<(), &'static str> {
    if level >= MAX_LEVELS {
        return Err(DEEP);
    }
    *left = left.checked_sub(key + 2 * level).ok_or(LARGE)?;
    fits(value, left, level + 1)
}

/// The size of a value when all of it is written, or why it cannot be read as a whole.
pub(super) fn weigh(value: &Value) -> Result<usize, &'static str> {
    let mut left = MAX_BYTES;
    fits(value, &mut left, 0)?;
    Ok(MAX_BYTES - left)
}
