//! The words of Go's encoding/json for a text that is no JSON. Servers and clients repeat them in messages.

use opdev_object::go::quote::invalid_character;

/// Go gives up on values that are nested deeper.
const MAX_DEPTH: usize = 10_000;

/// Says why a text is no JSON; `None` if it is.
pub fn syntax_error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { text, at: 0, open: Vec::new() };
    scanner.text().err()
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// The lists and maps around this place, outermost first, by the byte that ends them. A stack of
    /// our own, as the text may be nested deeper than a thread's.
    open: Vec<u8>,
}

type Scanned = Result<(), String>;

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Goes past a byte if it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn wrong(&self, place: &str) -> Scanned {
        match self.peek() {
            Some(byte) => Err(invalid_character(byte, place)),
            None => Err("unexpected end of JSON input".to_owned()),
        }
    }

    /// The error of a number, a word or an escape: there Go takes the end for a space.
    fn within(&self, place: &str) -> Scanned {
        Err(invalid_character(self.peek().unwrap_or(b' '), place))
    }

    fn text(&mut self) -> Scanned {
        loop {
            self.space();
            if self.starts()? {
                continue;
            }
            if self.ends()? {
                break;
            }
        }
        if self.peek().is_some() { self.wrong("after top-level value") } else { Ok(()) }
    }

    /// Reads a value, or the start of one; true if the start of a list or map with something in it was read.
    fn starts(&mut self) -> Result<bool, String> {
        match self.peek() {
            Some(open @ (b'{' | b'[')) => {
                if self.open.len() >= MAX_DEPTH {
                    return Err(invalid_character(open, "exceeded max depth"));
                }
                self.at += 1;
                self.open.push(if open == b'{' { b'}' } else { b']' });
                self.space();
                if self.peek() == self.open.last().copied() {
                    return Ok(false);
                }
                if open == b'{' {
                    self.key()?;
                }
                return Ok(true);
            }
            Some(b'"') => self.string()?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.wrong("looking for beginning of value")?,
        }
        Ok(false)
    }

    /// Reads what follows a value: ends of lists and maps, and the comma before the next value. True at
    /// the end of the text's own value.
    fn ends(&mut self) -> Result<bool, String> {
        loop {
            self.space();
            let Some(end) = self.open.last().copied() else { return Ok(true) };
            if self.take(end) {
                self.open.pop();
                continue;
            }
            let place = if end == b'}' { "after object key:value pair" } else { "after array element" };
            if !self.take(b',') {
                self.wrong(place)?;
            }
            if end == b'}' {
                self.space();
                self.key()?;
            }
            return Ok(false);
        }
    }

    fn key(&mut self) -> Scanned {
        if self.peek() != Some(b'"') {
            return self.wrong("looking for beginning of object key string");
        }
        self.string()?;
        self.space();
        if self.take(b':') { Ok(()) } else { self.wrong("after object key") }
    }

    fn string(&mut self) -> Scanned {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'u') => self.escaped()?,
                        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => {}
                        _ => return self.within("in string escape code"),
                    }
                }
                None | Some(0..=0x1f) => return self.wrong("in string literal"),
                Some(_) => {}
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }

    /// Reads the four digits of an escape, up to the last of them.
    fn escaped(&mut self) -> Scanned {
        for _ in 0..4 {
            self.at += 1;
            if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                return self.within("in \\u hexadecimal character escape");
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Scanned {
        for expected in word.bytes() {
            if !self.take(expected) {
                return self.within(&format!("in literal {word} (expecting '{}')", char::from(expected)));
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits("in numeric literal")?;
        }
        if self.take(b'.') {
            self.digits("after decimal point in numeric literal")?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self, place: &str) -> Scanned {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.within(place);
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Go 1.26 says so of each.
    #[test]
    fn what_is_no_json_is_told_in_the_words_of_go() {
        const END: &str = "unexpected end of JSON input";
        for (text, why) in [
            ("", END),
            (" {", END),
            ("{\"a\"", END),
            ("{\"a\":1,", END),
            ("\"a", END),
            ("apiVersion: v1", "invalid character 'a' looking for beginning of value"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[[1],{\"a\":[]}}", "invalid character '}' after array element"),
            ("{}x", "invalid character 'x' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("tru", "invalid character ' ' in literal true (expecting 'e')"),
            ("[nulx]", "invalid character 'x' in literal null (expecting 'l')"),
            ("-", "invalid character ' ' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1e+", "invalid character ' ' in exponent of numeric literal"),
            ("\"a\n\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\", "invalid character ' ' in string escape code"),
            ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
            ("é", "invalid character 'Ã' looking for beginning of value"),
            ("\0", "invalid character '\\x00' looking for beginning of value"),
        ] {
            assert_eq!(syntax_error(text.as_bytes()).as_deref(), Some(why), "{text}");
        }
        let deep = "[".repeat(MAX_DEPTH + 1);
        assert_eq!(
            syntax_error(deep.as_bytes()).as_deref(),
            Some("invalid character '[' exceeded max depth")
        );
        for text in
            ["{}", " [1, -0.5e3, \"\\u00e9\\n\", {\"a\": {\"b\": [null, true]}, \"c\": []}] ", "false"]
        {
            assert_eq!(syntax_error(text.as_bytes()), None, "{text}");
        }
    }
}
