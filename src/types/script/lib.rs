//! The contract of reconcilers (`contract`), and the two engines that fulfil it: TypeScript and JavaScript on
//! QuickJS (`script`), and folders of templates (`templates`). `program` loads either, `readiness` says when
//! a child is ready, `answer_checks` refuses answers that cannot be written. Texts go in, JSON comes out; a
//! reconciler reaches the outside only through `contract::Host`.

mod answer;
mod answer_checks;
mod bridge;
mod code;
pub mod contract;
mod machine;
mod modules;
mod places;
pub mod program;
pub mod readiness;
mod run;
mod script;
mod strip;
mod syntax;
mod templates;
#[cfg(test)]
pub(crate) mod tests;
mod time;
mod trace;
