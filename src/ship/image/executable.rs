//! Facts in an executable file: its processor, and the libraries that it needs from the image.

use std::fmt;

/// A program for Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The processor, in Go's word.
    pub architecture: &'static str,
    /// The loader that has to be there; `None` for a static program.
    pub loader: Option<String>,
    /// The libraries that it asks the loader for.
    pub libraries: Vec<String>,
}

/// Why a file is no program that an image for Linux can run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgramError {
    /// It is a program for macOS.
    MacOs,
    /// It is a program for Windows.
    Windows,
    /// It is a script.
    Script,
    /// It is none of these.
    NoProgram,
    /// Its processor has 32 bits, or the other order of bytes.
    WordSize,
    /// Its processor is unknown: the number in the file.
    Processor(u64),
    /// It ends too early.
    CutOff,
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProgramError::MacOs => "it is a program for macOS",
            ProgramError::Windows => "it is a program for Windows",
            ProgramError::Script => "it is a script",
            ProgramError::NoProgram => "it is no program",
            ProgramError::WordSize => {
                "it is a program for a processor of 32 bits, or with the other order of bytes"
            }
            ProgramError::Processor(number) => {
                return write!(f, "it is a program for a processor that opdev does not know ({number})");
            }
            ProgramError::CutOff => "it is cut off",
        })
    }
}

impl std::error::Error for ProgramError {}

const LOAD: u64 = 1;
const DYNAMIC: u64 = 2;
const INTERPRETER: u64 = 3;
const NEEDED: u64 = 1;
const STRINGS: u64 = 5;

impl Program {
    /// Reads the head of an executable file.
    ///
    /// # Errors
    /// That it is no program for Linux, and what it seems to be.
    pub fn read(bytes: &[u8]) -> Result<Program, ProgramError> {
        let elf = Elf { bytes };
        if !bytes.starts_with(b"\x7fELF") {
            return Err(match bytes.get(..4) {
                Some([0xcf, 0xfa, 0xed, 0xfe] | [0xca, 0xfe, 0xba, 0xbe]) => ProgramError::MacOs,
                Some([b'M', b'Z', ..]) => ProgramError::Windows,
                Some([b'#', b'!', ..]) => ProgramError::Script,
                _ => ProgramError::NoProgram,
            });
        }
        if bytes.get(4..6) != Some(&[2, 1]) {
            return Err(ProgramError::WordSize);
        }
        let architecture = match elf.number(18, 2) {
            Some(62) => "amd64",
            Some(183) => "arm64",
            Some(243) => "riscv64",
            Some(other) => return Err(ProgramError::Processor(other)),
            None => return Err(ProgramError::CutOff),
        };
        let whole = || -> Option<Program> {
            let segments = elf.segments()?;
            let of_kind = |kind: u64| segments.iter().find(move |segment| segment.kind == kind);
            let loader = match of_kind(INTERPRETER) {
                Some(segment) => Some(elf.text(segment.offset)?),
                None => None,
            };
            // A static program may have such a segment, too: it adjusts itself with it.
            let libraries = match of_kind(DYNAMIC).filter(|_| loader.is_some()) {
                Some(dynamic) => elf.libraries(dynamic, &segments)?,
                None => Vec::new(),
            };
            Some(Program { architecture, loader, libraries })
        };
        whole().ok_or(ProgramError::CutOff)
    }
}

struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

struct Elf<'a> {
    bytes: &'a [u8],
}

impl Elf<'_> {
    fn number(&self, at: u64, size: usize) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn segments(&self) -> Option<Vec<Segment>> {
        let (table, size, count) = (self.number(32, 8)?, self.number(54, 2)?, self.number(56, 2)?);
        let segment = |at: u64| {
            let at = table.checked_add(at * size)?;
            Some(Segment {
                kind: self.number(at, 4)?,
                offset: self.number(at.checked_add(8)?, 8)?,
                address: self.number(at.checked_add(16)?, 8)?,
                size: self.number(at.checked_add(32)?, 8)?,
            })
        };
        (0..count).map(segment).collect()
    }

    /// A text that ends with zero.
    fn text(&self, at: u64) -> Option<String> {
        let rest = self.bytes.get(usize::try_from(at).ok()?..)?;
        let end = rest.iter().take(4096).position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    }

    fn libraries(&self, dynamic: &Segment, segments: &[Segment]) -> Option<Vec<String>> {
        let entries: Option<Vec<(u64, u64)>> = (0..dynamic.size / 16)
            .map(|at| {
                let at = dynamic.offset.checked_add(at * 16)?;
                Some((self.number(at, 8)?, self.number(at.checked_add(8)?, 8)?))
            })
            .take_while(|entry| entry.is_none_or(|(tag, _)| tag != 0))
            .collect();
        let entries = entries?;
        let value = |wanted: u64| entries.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value);
        let Some(strings) = value(STRINGS) else { return Some(Vec::new()) };
        let loaded = segments.iter().filter(|segment| segment.kind == LOAD);
        let mut loaded = loaded.filter_map(|segment| {
            let inside = strings.checked_sub(segment.address).filter(|inside| *inside < segment.size)?;
            segment.offset.checked_add(inside)
        });
        let table = loaded.next()?;
        let needed = entries.iter().filter(|(tag, _)| *tag == NEEDED);
        needed.map(|(_, name)| self.text(table.checked_add(*name)?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_program_with_libraries_names_them() {
        let bytes = std::fs::read("/bin/sh").unwrap();
        let program = Program::read(&bytes).unwrap();
        let here = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        assert_eq!(program.architecture, here);
        if program.loader.is_some() {
            assert!(program.libraries.iter().any(|name| name.starts_with("libc.")), "{program:?}");
        }
        // However it is cut, it is refused or read, and nothing else happens.
        for end in (0..bytes.len().min(20_000)).step_by(7) {
            let _ = Program::read(&bytes[..end]);
        }
    }

    #[test]
    fn what_is_no_program_for_linux_is_named() {
        let refused = |bytes: &[u8]| Program::read(bytes).unwrap_err().to_string();
        assert_eq!(refused(b"#!/bin/sh\n"), "it is a script");
        assert_eq!(refused(&[0xcf, 0xfa, 0xed, 0xfe, 7]), "it is a program for macOS");
        assert_eq!(refused(b"MZ\x90\0"), "it is a program for Windows");
        assert_eq!(refused(b""), "it is no program");
        assert_eq!(refused(b"\x7fELF\x02\x01"), "it is cut off");
        expect!["it is a program for a processor of 32 bits, or with the other order of bytes"]
            .assert_eq(&refused(b"\x7fELF\x01\x01"));
    }
}
