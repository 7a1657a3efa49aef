//! `--fields`: one field of a sample is changed at a time. `mutation` says which changes there are, `run` is one
//! run of a change, `campaign` tries them all, `excused` knows errors that accuse nobody.

pub(super) mod campaign;
mod excused;
pub(super) mod mutation;
mod reach;
mod run;
