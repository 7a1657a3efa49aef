//! Go's fmt.Sprintf: directives with flags, width, precision and argument indexes. Values are printed by
//! `print`.

use super::error::{FuncError, LONGEST_MESSAGE};
use super::print::{Flags, Printer};
use super::value::Value;
use opdev_object::go::quote::decode;

/// Charges what a text is about to come to.
type Makes<'m> = dyn FnMut(usize) -> Result<(), FuncError> + 'm;

/// Go's fmt.Sprintf. A format may name an argument again and again, so each directive is charged before it is
/// followed.
pub(super) fn sprintf(format: &[u8], args: &[Value], makes: &mut Makes<'_>) -> Result<Vec<u8>, FuncError> {
    let mut printer = Printer::default();
    printer.format(format, args, makes)?;
    Ok(printer.out)
}

/// One value by a format of an error text, cut where it is long.
pub(super) fn shown(format: &str, value: &Value) -> String {
    let mut printer = Printer { most: LONGEST_MESSAGE, ..Printer::default() };
    let _ = printer.format(format.as_bytes(), std::slice::from_ref(value), &mut |_| Ok(()));
    String::from_utf8_lossy(&printer.out).into_owned()
}

/// Where `format` is while it reads one directive.
struct Cursor<'a> {
    format: &'a [u8],
    at: usize,
    arg: usize,
    args: usize,
    after_index: bool,
    good: bool,
    reordered: bool,
}

impl Cursor<'_> {
    fn byte(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        let mut n = 0usize;
        while let Some(d) = self.byte().filter(u8::is_ascii_digit) {
            n = n * 10 + usize::from(d - b'0');
            if n > 1_000_000 {
                return None;
            }
            self.at += 1;
        }
        (self.at > start).then_some(n)
    }

    /// An explicit `[n]`.
    fn index(&mut self) {
        if self.byte() != Some(b'[') {
            self.after_index = false;
            return;
        }
        self.reordered = true;
        let rest = &self.format[self.at..];
        let Some(close) = rest.iter().position(|b| *b == b']') else {
            self.good = false;
            self.at += 1;
            return;
        };
        let digits = std::str::from_utf8(&rest[1..close]).unwrap_or("");
        match digits.parse::<usize>() {
            Ok(n) if digits.bytes().all(|b| b.is_ascii_digit()) && n >= 1 && n <= self.args => {
                self.arg = n - 1;
                self.after_index = true;
            }
            _ => {
                self.good = false;
                self.after_index = true;
            }
        }
        self.at += close + 1;
    }
}

impl Printer {
    fn format(&mut self, format: &[u8], args: &[Value], makes: &mut Makes<'_>) -> Result<(), FuncError> {
        let mut cursor = Cursor {
            format,
            at: 0,
            arg: 0,
            args: args.len(),
            after_index: false,
            good: true,
            reordered: false,
        };
        while cursor.at < format.len() {
            let rest = &format[cursor.at..];
            let plain = rest.iter().position(|b| *b == b'%').unwrap_or(rest.len());
            self.out.extend_from_slice(&rest[..plain]);
            cursor.at += plain;
            if cursor.at >= format.len() {
                break;
            }
            cursor.at += 1;
            makes(self.out.len())?;
            if !self.directive(&mut cursor, args, makes)? {
                break;
            }
        }
        if !cursor.reordered && cursor.arg < args.len() {
            self.extra(&args[cursor.arg..]);
        }
        Ok(())
    }

    fn extra(&mut self, args: &[Value]) {
        self.flags = Flags::default();
        self.text("%!(EXTRA ");
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                self.text(", ");
            }
            if arg.is_nil() {
                self.text("<nil>");
            } else {
                self.text(&arg.type_name());
                self.text("=");
                self.arg(arg, 'v');
            }
        }
        self.text(")");
    }

    /// One directive after its `%`; false when the format ends in it.
    fn directive(
        &mut self,
        cursor: &mut Cursor<'_>,
        args: &[Value],
        makes: &mut Makes<'_>,
    ) -> Result<bool, FuncError> {
        self.flags = Flags::default();
        cursor.good = true;
        cursor.after_index = false;
        while let Some(byte) = cursor.byte() {
            match byte {
                b'#' => self.flags.sharp = true,
                b'0' => self.flags.zero = true,
                b'+' => self.flags.plus = true,
                b'-' => self.flags.minus = true,
                b' ' => self.flags.space = true,
                _ => break,
            }
            cursor.at += 1;
        }
        cursor.index();
        self.width(cursor, args);
        self.precision(cursor, args);
        if !cursor.after_index {
            cursor.index();
        }
        if cursor.at >= cursor.format.len() {
            self.text("%!(NOVERB)");
            return Ok(false);
        }
        let (verb, size) = decode(&cursor.format[cursor.at..]);
        let verb = verb.unwrap_or('\u{fffd}');
        cursor.at += size;
        if verb == '%' {
            self.out.push(b'%');
        } else if !cursor.good {
            self.text("%!");
            self.text(verb.encode_utf8(&mut [0; 4]));
            self.text("(BADINDEX)");
        } else if let Some(arg) = args.get(cursor.arg) {
            if verb == 'v' {
                self.flags.sharp_v = std::mem::take(&mut self.flags.sharp);
                self.flags.plus_v = std::mem::take(&mut self.flags.plus);
            }
            /// Bytes that one byte of a text becomes in `%#x` with blanks, or in quotes.
            const ESCAPED: usize = 6;
            let text = arg.as_str().map_or(0, |text| text.len());
            makes(self.out.len() + ESCAPED * text + self.flags.width.unwrap_or(0))?;
            self.arg(arg, verb);
            cursor.arg += 1;
        } else {
            self.text("%!");
            self.text(verb.encode_utf8(&mut [0; 4]));
            self.text("(MISSING)");
        }
        Ok(true)
    }

    fn width(&mut self, cursor: &mut Cursor<'_>, args: &[Value]) {
        if cursor.byte() != Some(b'*') {
            self.flags.width = cursor.number();
            cursor.good &= !(cursor.after_index && self.flags.width.is_some());
            return;
        }
        cursor.at += 1;
        cursor.after_index = false;
        let found = args.get(cursor.arg).and_then(small_int);
        cursor.arg += 1;
        match found {
            None => self.text("%!(BADWIDTH)"),
            Some(n) => {
                self.flags.width = usize::try_from(n.unsigned_abs()).ok();
                if n < 0 {
                    self.flags.minus = true;
                    self.flags.zero = false;
                }
            }
        }
    }

    fn precision(&mut self, cursor: &mut Cursor<'_>, args: &[Value]) {
        if cursor.byte() != Some(b'.') || cursor.at + 1 >= cursor.format.len() {
            return;
        }
        cursor.at += 1;
        cursor.good &= !cursor.after_index;
        cursor.index();
        if cursor.byte() != Some(b'*') {
            self.flags.precision = Some(cursor.number().unwrap_or(0));
            return;
        }
        cursor.at += 1;
        cursor.after_index = false;
        let found = args.get(cursor.arg).and_then(small_int).filter(|n| *n >= 0);
        cursor.arg += 1;
        match found {
            None => self.text("%!(BADPREC)"),
            Some(n) => self.flags.precision = usize::try_from(n).ok(),
        }
    }
}

fn small_int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) | Value::Int64(n) if n.unsigned_abs() <= 1_000_000 => Some(*n),
        Value::Uint(_, n) => i64::try_from(*n).ok().filter(|n| *n <= 1_000_000),
        _ => None,
    }
}
