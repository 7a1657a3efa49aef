//! The pace of a torture: whose turn it is (`turns`), and how long a program has to be quiet before a run
//! goes on (`windows`). Knows nothing of operators and objects.

pub mod turns;
pub mod windows;
