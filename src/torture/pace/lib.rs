//! The pace of a torture: whose turn it is (`turns`), how many scenarios are learned before they are needed
//! (`learning`), how much of the time each scenario gets (`shares`), and how long a program has to be quiet
//! before a run goes on (`windows`). Knows nothing of operators and objects.

pub mod learning;
pub mod shares;
pub mod turns;
pub mod windows;
