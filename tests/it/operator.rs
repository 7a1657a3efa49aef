//! The operator against the embedded control plane: what the Operator SDK's Helm operator does, and what
//! opdev adds to it: causes, drift with names, rewriting in place, and failures with their whole story.

mod beyond;
mod caught_up;
mod failure;

mod history;
mod hybrid;
mod install;
mod loops;
mod options;
mod others;
mod paused;
mod planned;
mod revisions;
mod scripted;
mod storage;
mod taken_over;
mod typed;
mod watching;
mod world;
