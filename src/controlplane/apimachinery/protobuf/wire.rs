//! The protobuf wire format: tags and values off a slice of bytes. Knows nothing of messages.

use super::error::{Error, Fault};

/// The first bytes of every such body.
pub const MAGIC: &[u8] = b"k8s\0";

/// Schemas may nest; nothing sane does so deeper than this.
pub(super) const DEPTH: usize = 128;

/// One field of a message as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

impl<'a> Raw<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], Error> {
        match self {
            Raw::Bytes(bytes) => Ok(bytes),
            other => Err(Fault::wrong_wire_type(other, "bytes were").into()),
        }
    }

    pub(super) fn varint(self) -> Result<u64, Error> {
        match self {
            Raw::Varint(number) => Ok(number),
            other => Err(Fault::wrong_wire_type(other, "a varint was").into()),
        }
    }

    pub(super) fn text(self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.bytes()?).map_err(|error| Fault::Utf8(error).into())
    }
}

/// Reads the fields of a message one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Raw<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u64, Raw<'a>), Error> {
        let tag = self.varint()?;
        let raw = match tag & 7 {
            0 => Raw::Varint(self.varint()?),
            1 => Raw::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Fault::Eof)?;
                Raw::Bytes(self.take(length)?)
            }
            5 => Raw::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(Fault::IllegalWireType(other).into()),
        };
        Ok((tag >> 3, raw))
    }

    pub(super) fn varint(&mut self) -> Result<u64, Error> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Fault::Overflow.into())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Fault::Eof)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| Fault::Eof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_off_one_by_one() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i'];
        let read: Result<Vec<_>, _> = Fields(&bytes).collect();
        assert_eq!(read.unwrap(), [(1, Raw::Varint(150)), (2, Raw::Bytes(b"hi"))]);
    }

    #[test]
    fn what_is_cut_off_is_an_error_once() {
        for bytes in [&[0x08][..], &[0x12, 0x05, b'h'], &[0x0b], &[0xff; 11], &[0x09, 1, 2]] {
            let read: Vec<_> = Fields(bytes).collect();
            assert!(read.last().unwrap().is_err(), "{bytes:?}");
        }
    }
}
