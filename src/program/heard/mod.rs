//! News of a program while it runs: reconciles that its trace tells of (`under_way`), and errors that it
//! prints again and again (`complaints`).

pub mod complaints;
pub mod under_way;
