//! `opdev ci`: scenarios, each on a control plane of its own with the operator of the project, and what came
//! of them; or each in a namespace of its own on a cluster (`scenario/shared_cluster`). Draws nothing and
//! prints nothing but through the reports that it returns. `run` runs all of them, `program` runs somebody
//! else's tests; one scenario is a matter of the room `scenario`.

pub mod program;
pub mod run;

pub use program::{Ended, program};

pub use run::{CiInput, KeptPlane, NoScenario, Pick, Scenario, Shard, ShardError, run, scenarios};
