//! Directives, anchors, aliases and tags: the tokens made of names.

use super::reader::{Mark, Problem};
use super::scan::{Kind, Scanner, Token};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Scanner<'_> {
    fn skip_blanks(&mut self) -> Result<(), Problem> {
        while self.reader.is_blank(0) {
            self.reader.skip();
            self.reader.ensure(1)?;
        }
        Ok(())
    }

    /// `%YAML 1.1` or `%TAG !x! prefix`, with the rest of its line.
    pub(super) fn directive_token(&mut self) -> Result<Token, Problem> {
        let start = self.reader.mark;
        self.reader.skip();
        let name = self.word()?;
        if name.is_empty() {
            return Err(self.problem(start, "could not find expected directive name"));
        }
        if !self.reader.is_space_or_end(0) {
            return Err(self.problem(start, "found unexpected non-alphabetical character"));
        }
        let kind = match &*name {
            b"YAML" => {
                self.skip_blanks()?;
                let major = self.version_number(start)?;
                if self.reader.byte(0) != b'.' {
                    return Err(self.problem(start, "did not find expected digit or '.' character"));
                }
                self.reader.skip();
                Kind::Version(major, self.version_number(start)?)
            }
            b"TAG" => {
                self.skip_blanks()?;
                let handle = self.tag_handle(true, start)?;
                self.reader.ensure(1)?;
                if !self.reader.is_blank(0) {
                    return Err(self.problem(start, "did not find expected whitespace"));
                }
                self.skip_blanks()?;
                let prefix = self.tag_uri(&[], start)?;
                self.reader.ensure(1)?;
                if !self.reader.is_space_or_end(0) {
                    return Err(self.problem(start, "did not find expected whitespace or line break"));
                }
                Kind::TagDirective(text(&handle), text(&prefix))
            }
            _ => return Err(self.problem(start, "found unknown directive name")),
        };
        let end = self.reader.mark;
        self.reader.ensure(1)?;
        self.skip_blanks()?;
        self.skip_comment()?;
        if !self.reader.is_break_or_end(0) {
            return Err(self.problem(start, "did not find expected comment or line break"));
        }
        if self.reader.is_break(0) {
            self.reader.ensure(2)?;
            self.reader.skip_line();
        }
        Ok(Token { kind, start, end })
    }

    fn version_number(&mut self, start: Mark) -> Result<u8, Problem> {
        self.reader.ensure(1)?;
        let (mut value, mut length) = (0u8, 0);
        while self.reader.byte(0).is_ascii_digit() {
            length += 1;
            if length > 2 {
                return Err(self.problem(start, "found extremely long version number"));
            }
            value = value * 10 + (self.reader.byte(0) - b'0');
            self.reader.skip();
            self.reader.ensure(1)?;
        }
        if length == 0 {
            return Err(self.problem(start, "did not find expected version number"));
        }
        Ok(value)
    }

    fn word(&mut self) -> Result<Vec<u8>, Problem> {
        let mut word = Vec::new();
        self.reader.ensure(1)?;
        while self.reader.is_word() {
            self.reader.read(&mut word);
            self.reader.ensure(1)?;
        }
        Ok(word)
    }

    /// `&name` or `*name`.
    pub(super) fn anchor(&mut self) -> Result<Token, Problem> {
        let start = self.reader.mark;
        let alias = self.reader.byte(0) == b'*';
        self.reader.skip();
        let name = self.word()?;
        let end = self.reader.mark;
        let ends = matches!(self.reader.byte(0), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !(ends || self.reader.is_space_or_end(0)) {
            return Err(self.problem(start, "did not find expected alphabetic or numeric character"));
        }
        let kind = if alias { Kind::Alias(text(&name)) } else { Kind::Anchor(text(&name)) };
        Ok(Token { kind, start, end })
    }

    /// `!suffix`, `!handle!suffix`, `!<uri>` or `!`.
    pub(super) fn tag(&mut self) -> Result<Token, Problem> {
        let start = self.reader.mark;
        self.reader.ensure(2)?;
        let (handle, suffix) = if self.reader.byte(1) == b'<' {
            self.reader.skip();
            self.reader.skip();
            let uri = self.tag_uri(&[], start)?;
            if self.reader.byte(0) != b'>' {
                return Err(self.problem(start, "did not find the expected '>'"));
            }
            self.reader.skip();
            (Vec::new(), uri)
        } else {
            let handle = self.tag_handle(false, start)?;
            if handle.len() > 1 && handle.ends_with(b"!") {
                let suffix = self.tag_uri(&[], start)?;
                (handle, suffix)
            } else {
                let suffix = self.tag_uri(&handle, start)?;
                if suffix.is_empty() { (suffix, b"!".to_vec()) } else { (b"!".to_vec(), suffix) }
            }
        };
        self.reader.ensure(1)?;
        if !self.reader.is_space_or_end(0) {
            return Err(self.problem(start, "did not find expected whitespace or line break"));
        }
        Ok(Token { kind: Kind::Tag(text(&handle), text(&suffix)), start, end: self.reader.mark })
    }

    fn tag_handle(&mut self, directive: bool, start: Mark) -> Result<Vec<u8>, Problem> {
        const MISSING: &str = "did not find expected '!'";
        self.reader.ensure(1)?;
        if self.reader.byte(0) != b'!' {
            return Err(self.problem(start, MISSING));
        }
        let mut handle = Vec::new();
        self.reader.read(&mut handle);
        handle.extend(self.word()?);
        if self.reader.byte(0) == b'!' {
            self.reader.read(&mut handle);
        } else if directive && handle != b"!" {
            return Err(self.problem(start, MISSING));
        }
        Ok(handle)
    }

    /// The rest of a tag; `head` is what was read of it as a handle.
    fn tag_uri(&mut self, head: &[u8], start: Mark) -> Result<Vec<u8>, Problem> {
        let mut uri = head.get(1..).unwrap_or_default().to_vec();
        let mut found = !head.is_empty();
        self.reader.ensure(1)?;
        while self.reader.is_word() || b";/?:@&=+$,.!~*'()[]%".contains(&self.reader.byte(0)) {
            if self.reader.byte(0) == b'%' {
                self.uri_escapes(start, &mut uri)?;
            } else {
                self.reader.read(&mut uri);
            }
            self.reader.ensure(1)?;
            found = true;
        }
        if !found {
            return Err(self.problem(start, "did not find expected tag URI"));
        }
        Ok(uri)
    }

    /// One character written as `%C3%A9`.
    fn uri_escapes(&mut self, start: Mark, uri: &mut Vec<u8>) -> Result<(), Problem> {
        let mut left = None;
        while left != Some(0) {
            self.reader.ensure(3)?;
            let digit = |ahead: usize| char::from(self.reader.byte(ahead)).to_digit(16);
            let (b'%', Some(high), Some(low)) = (self.reader.byte(0), digit(1), digit(2)) else {
                return Err(self.problem(start, "did not find URI escaped octet"));
            };
            let octet = u8::try_from(high * 16 + low).unwrap_or(0);
            let more = match left {
                None => match octet {
                    ..0x80 => 1,
                    0xc0..=0xdf => 2,
                    0xe0..=0xef => 3,
                    0xf0..=0xf7 => 4,
                    _ => return Err(self.problem(start, "found an incorrect leading UTF-8 octet")),
                },
                Some(_) if octet & 0xc0 != 0x80 => {
                    return Err(self.problem(start, "found an incorrect trailing UTF-8 octet"));
                }
                Some(more) => more,
            };
            uri.push(octet);
            for _ in 0..3 {
                self.reader.skip();
            }
            left = Some(more - 1);
        }
        Ok(())
    }
}
