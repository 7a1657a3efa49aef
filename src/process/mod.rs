//! Operators that are processes of their own: what opdev puts into their build and hears from them.
//! Never draws, and never decides what a pass means: `tap::attribute` does. Read `trace` first.

pub mod trace;
