//! The screen as a whole: what keys ask for, and what is seen. The smaller parts are tested where they stand.

mod acting;
mod ascii;
mod background;
mod clusters;
mod filter;
mod finding;
pub(super) mod fixture;
mod folds;
mod found;
pub(super) mod frames;
mod held;
mod history;
mod keys;
mod pages;
mod picture;
mod programs;
mod registry;
mod seeing;
mod sizes;
mod soak;
mod storm;
mod tables;
mod waterfall;
