//! The first line: which of its parts have room (`parts`), and how far the newest save is (`saves`, `programs`).

pub mod parts;
pub mod programs;
pub mod saves;
