//! Go's fmt over template values: `%v` and its kin, `print`, `println`, and what an action writes.
//! Texts of wrong verbs (`%!d(string=x)`) are part of what charts show, so they are kept.

use super::float;
use super::value::{Elem, Kind, List, Map, Value};
use opdev_object::go::quote::{decode, quote_ascii, quote_bytes as quote, quote_char};

/// How deep values are printed.
const MAX_DEPTH: usize = 500;

/// How much is printed: what is longer is refused before, except where it belongs to an error.
const MAX_LENGTH: usize = super::budget::MAX_BYTES;

/// The text that an action writes for a value.
pub(super) fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nil => out.extend_from_slice(b"<no value>"),
        Value::Str(text) => out.extend_from_slice(text),
        Value::Int(n) | Value::Int64(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::Host(host) if host.addressed_text().is_some() => {
            out.extend_from_slice(&host.addressed_text().unwrap_or_default());
        }
        Value::Host(host) if host.kind() == Kind::Ptr && host.text().is_none() => {
            let mut printer = Printer::default();
            printer.host_fields(value, 'v', 0);
            out.append(&mut printer.out);
        }
        _ => out.append(&mut sprint(value)),
    }
}

/// `%v` of one value.
pub(super) fn sprint(value: &Value) -> Vec<u8> {
    match value {
        Value::Str(text) => text.to_vec(),
        _ => {
            let mut printer = Printer::default();
            printer.arg(value, 'v');
            printer.out
        }
    }
}

/// Go's fmt.Sprint: a space between operands when neither is a string.
pub(super) fn sprint_all(args: &[Value]) -> Vec<u8> {
    let mut printer = Printer::default();
    let mut was_string = false;
    for (i, arg) in args.iter().enumerate() {
        let is_string = matches!(arg, Value::Str(_));
        if i > 0 && !is_string && !was_string {
            printer.out.push(b' ');
        }
        printer.arg(arg, 'v');
        was_string = is_string;
    }
    printer.out
}

/// Go's fmt.Sprintln.
pub(super) fn sprintln(args: &[Value]) -> Vec<u8> {
    let mut printer = Printer::default();
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            printer.out.push(b' ');
        }
        printer.arg(arg, 'v');
    }
    printer.out.push(b'\n');
    printer.out
}

#[derive(Default)]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) plus: bool,
    pub(super) minus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    pub(super) plus_v: bool,
    pub(super) sharp_v: bool,
}

pub(super) struct Printer {
    pub(super) out: Vec<u8>,
    pub(super) flags: Flags,
    /// Bytes after which no further value is written.
    pub(super) most: usize,
}

impl Default for Printer {
    fn default() -> Printer {
        Printer { out: Vec::new(), flags: Flags::default(), most: MAX_LENGTH }
    }
}

impl Printer {
    pub(super) fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn pad(&mut self, text: &[u8]) {
        let Some(width) = self.flags.width.filter(|w| *w > 0) else {
            self.out.extend_from_slice(text);
            return;
        };
        let mut count = 0;
        let mut rest = text;
        while !rest.is_empty() {
            rest = &rest[decode(rest).1..];
            count += 1;
        }
        let fill = width.saturating_sub(count);
        if self.flags.minus {
            self.out.extend_from_slice(text);
            self.fill(fill, b' ');
        } else {
            self.fill(fill, if self.flags.zero { b'0' } else { b' ' });
            self.out.extend_from_slice(text);
        }
    }

    fn fill(&mut self, count: usize, byte: u8) {
        self.out.resize(self.out.len() + count, byte);
    }

    fn bad_verb(&mut self, value: &Value, verb: char) {
        self.text("%!");
        self.text(verb.encode_utf8(&mut [0; 4]));
        if value.is_nil() {
            self.text("(<nil>)");
            return;
        }
        self.text("(");
        self.text(&value.type_name());
        self.text("=");
        self.value(value, 'v', 0);
        self.text(")");
    }

    /// One operand.
    pub(super) fn arg(&mut self, value: &Value, verb: char) {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            (Value::Nil, _) | (Value::List(_) | Value::Map(_) | Value::Host(_), 'w') => {
                self.bad_verb(value, verb);
            }
            (_, 'T') => self.string(value.type_name().as_bytes(), 's', value),
            (Value::List(list), 'v' | 'd') if list.elem() == Elem::Byte && !self.flags.sharp_v => {
                self.bytes_list(list);
            }
            _ => self.value(value, verb, 0),
        }
    }

    fn bytes_list(&mut self, list: &List) {
        self.out.push(b'[');
        for (i, item) in list.items().iter().enumerate() {
            if i > 0 {
                self.out.push(b' ');
            }
            self.value(item, 'd', 1);
        }
        self.out.push(b']');
    }

    fn value(&mut self, value: &Value, verb: char, depth: usize) {
        match value {
            _ if self.out.len() > self.most => {}
            // A map that holds itself; Go would run out of stack here.
            _ if depth > MAX_DEPTH => self.text("..."),
            Value::Nil if self.flags.sharp_v => self.text("interface {}(nil)"),
            Value::Nil => self.text("<nil>"),
            Value::Bool(b) => match verb {
                't' | 'v' => self.pad(b.to_string().as_bytes()),
                _ => self.bad_verb(value, verb),
            },
            Value::Int(n) | Value::Int64(n) => self.integer(n.unsigned_abs(), *n < 0, verb, value),
            Value::Uint(_, n) => self.integer(*n, false, verb, value),
            Value::Float(f) => self.float(*f, verb, value),
            Value::Str(text) => self.string(text, verb, value),
            Value::List(list) => self.list(list, verb, depth),
            Value::Map(map) => self.map(map, map.type_name(), verb, depth),
            Value::Host(host) => {
                let speaks = !self.flags.sharp_v && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q');
                if let Some(text) = host.text().filter(|_| speaks) {
                    self.string(&text, verb, value);
                    return;
                }
                match host.underlying() {
                    Some(Value::Map(map)) => self.map(&map, &host.type_name(), verb, depth),
                    Some(inner) => self.value(&inner, verb, depth),
                    None if host.kind() == Kind::Ptr && depth > 0 => self.address(value, verb),
                    None => {
                        if host.kind() == Kind::Ptr {
                            self.out.push(b'&');
                        }
                        self.host_fields(value, verb, depth);
                    }
                }
            }
        }
    }

    /// A pointer within a value; the address itself means nothing.
    fn address(&mut self, value: &Value, verb: char) {
        const ADDRESS: u64 = 0xc0_0000_0000;
        match verb {
            'v' | 'p' => self.text("0xc000000000"),
            'b' | 'o' | 'd' | 'x' | 'X' => self.integer(ADDRESS, false, verb, value),
            _ => self.bad_verb(value, verb),
        }
    }

    fn host_fields(&mut self, value: &Value, verb: char, depth: usize) {
        let Value::Host(host) = value else { return };
        if self.flags.sharp_v {
            self.text(host.type_name().trim_start_matches('*'));
        }
        self.out.push(b'{');
        for (i, (name, field)) in host.fields().iter().enumerate() {
            if i > 0 {
                self.text(if self.flags.sharp_v { ", " } else { " " });
            }
            if self.flags.plus_v || self.flags.sharp_v {
                self.text(name);
                self.out.push(b':');
            }
            self.value(field, verb, depth + 1);
        }
        self.out.push(b'}');
    }

    fn list(&mut self, list: &List, verb: char, depth: usize) {
        if list.elem() == Elem::Byte && matches!(verb, 's' | 'q' | 'x' | 'X') {
            self.string(&list.to_bytes(), verb, &Value::List(list.clone()));
            return;
        }
        let sharp = self.flags.sharp_v;
        if sharp {
            self.text(&list.type_name());
            if list.is_nil() {
                self.text("(nil)");
                return;
            }
        }
        self.out.push(if sharp { b'{' } else { b'[' });
        for (i, item) in list.items().iter().enumerate() {
            if i > 0 {
                self.text(if sharp { ", " } else { " " });
            }
            self.value(item, verb, depth + 1);
        }
        self.out.push(if sharp { b'}' } else { b']' });
    }

    fn map(&mut self, map: &Map, type_name: &str, verb: char, depth: usize) {
        let sharp = self.flags.sharp_v;
        if sharp {
            self.text(type_name);
            if map.is_nil() {
                self.text("(nil)");
                return;
            }
            self.out.push(b'{');
        } else {
            self.text("map[");
        }
        for (i, (key, item)) in map.snapshot().into_iter().enumerate() {
            if i > 0 {
                self.text(if sharp { ", " } else { " " });
            }
            self.value(&Value::Str(key), verb, depth + 1);
            self.out.push(b':');
            self.value(&item, verb, depth + 1);
        }
        self.out.push(if sharp { b'}' } else { b']' });
    }

    fn string(&mut self, text: &[u8], verb: char, value: &Value) {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => {
                let cut = self.truncate(text).to_vec();
                self.pad(&cut);
            }
            'x' | 'X' => self.hex(text, verb == 'X'),
            'q' => self.quoted(text),
            _ => self.bad_verb(value, verb),
        }
    }

    fn truncate<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let Some(limit) = self.flags.precision else { return text };
        let mut at = 0;
        for _ in 0..limit {
            if at >= text.len() {
                break;
            }
            at += decode(&text[at..]).1;
        }
        &text[..at]
    }

    fn quoted(&mut self, text: &[u8]) {
        let text = self.truncate(text);
        let plain = std::str::from_utf8(text).is_ok_and(|t| {
            !t.chars().any(|c| c == '`' || c == '\u{feff}' || (c < ' ' && c != '\t') || c == '\u{7f}')
        });
        let shown = if self.flags.sharp && plain {
            format!("`{}`", String::from_utf8_lossy(text))
        } else if self.flags.plus {
            quote_ascii(text)
        } else {
            quote(text)
        };
        self.pad(shown.as_bytes());
    }

    fn hex(&mut self, text: &[u8], upper: bool) {
        let limit = self.flags.precision.unwrap_or(text.len()).min(text.len());
        let mut shown = String::new();
        for (i, byte) in text[..limit].iter().enumerate() {
            if self.flags.space && i > 0 {
                shown.push(' ');
            }
            if self.flags.sharp && (self.flags.space || i == 0) {
                shown.push_str(if upper { "0X" } else { "0x" });
            }
            shown.push_str(&if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
        }
        self.pad(shown.as_bytes());
    }

    fn integer(&mut self, n: u64, negative: bool, verb: char, value: &Value) {
        let digits = match verb {
            'v' | 'd' => n.to_string(),
            'b' => format!("{n:b}"),
            'o' | 'O' => format!("{n:o}"),
            'x' => format!("{n:x}"),
            'X' => format!("{n:X}"),
            'c' | 'q' | 'U' => {
                let c = u32::try_from(n)
                    .ok()
                    .filter(|_| !negative)
                    .and_then(char::from_u32)
                    .unwrap_or('\u{fffd}');
                let shown = match verb {
                    'c' => c.to_string(),
                    'q' => quote_char(c, self.flags.plus),
                    _ if self.flags.sharp => format!("U+{n:04X} '{c}'"),
                    _ => format!("U+{n:04X}"),
                };
                return self.pad(shown.as_bytes());
            }
            _ => return self.bad_verb(value, verb),
        };
        let flags = &self.flags;
        let signed = negative || flags.plus || flags.space;
        let mut least = 0;
        if let Some(precision) = flags.precision {
            least = precision;
            if precision == 0 && n == 0 {
                let width = flags.width.unwrap_or(0);
                return self.fill(width, b' ');
            }
        } else if flags.zero && !flags.minus {
            least = flags.width.unwrap_or(0).saturating_sub(usize::from(signed));
        }
        let mut shown = String::new();
        if negative {
            shown.push('-');
        } else if flags.plus {
            shown.push('+');
        } else if flags.space {
            shown.push(' ');
        }
        if verb == 'O' {
            shown.push_str("0o");
        } else if flags.sharp {
            shown.push_str(match verb {
                'b' => "0b",
                'o' if !digits.starts_with('0') => "0",
                'x' => "0x",
                'X' => "0X",
                _ => "",
            });
        }
        for _ in digits.len()..least {
            shown.push('0');
        }
        shown.push_str(&digits);
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(shown.as_bytes());
        self.flags.zero = zero;
    }

    fn float(&mut self, f: f64, verb: char, value: &Value) {
        let (form, default) = match verb {
            'v' | 'g' => (b'g', None),
            'G' => (b'G', None),
            'e' => (b'e', Some(6)),
            'E' => (b'E', Some(6)),
            'f' | 'F' => (b'f', Some(6)),
            'x' => (b'x', None),
            'X' => (b'X', None),
            'b' => (b'b', None),
            _ => return self.bad_verb(value, verb),
        };
        let mut shown = float::format(f, form, self.flags.precision.or(default));
        if self.flags.sharp && verb != 'b' && f.is_finite() {
            shown = float::sharp(&shown, verb, self.flags.precision);
        }
        let (mut sign, body) = match shown.strip_prefix('-') {
            Some(body) => ('-', body),
            None => ('+', shown.trim_start_matches('+')),
        };
        if self.flags.space && sign == '+' && !self.flags.plus {
            sign = ' ';
        }
        let zero = self.flags.zero;
        self.flags.zero = zero && f.is_finite();
        if sign != '+' || self.flags.plus {
            let width = self.flags.width.unwrap_or(0);
            if self.flags.zero && !self.flags.minus && width > body.len() + 1 {
                self.text(sign.encode_utf8(&mut [0; 4]));
                self.fill(width - body.len() - 1, b'0');
                self.text(body);
            } else {
                self.pad(format!("{sign}{body}").as_bytes());
            }
        } else if f.is_infinite() {
            self.pad(format!("+{body}").as_bytes());
        } else {
            self.pad(body.as_bytes());
        }
        self.flags.zero = zero;
    }
}
