//! Soak runs: seeded schedules of faults in virtual time, and rules that hold after every event.
//!
//! A seed gives a [`SoakCase`]: a pool and a list of steps, of which most are faults of policies,
//! workers, clients or operators. A case that breaks a rule is cut down to the steps that it needs,
//! and printed as a test.
//!
//! In data order:
//! - `pool`: the pool of a case; `step`: an event of it; `draw`: both from a seed
//! - `mischief`: counts of the faults of policies; `shown`: the check of their windows; `plans`, `hostile`: policies
//!   that misbehave
//! - `violation`: a broken rule; `books`: requests and their answers; `bench`: workers with their
//!   batches; `log`: a hash of all commands
//! - `world`: the scheduler with both; `rules`: the checks after each event; `drive`: carries commands out;
//!   `play`: steps, and the end
//! - `case`: one run; `minimise`: fewer steps; `text`: a case as source text; `run`: many seeds

mod bench;
mod books;
mod case;
mod draw;
mod drive;
mod hostile;
mod log;
mod minimise;
mod mischief;
mod plans;
mod play;
mod pool;
mod rules;
mod run;
mod shown;
mod step;
mod text;
mod violation;
mod world;

pub use case::{CaseOutcome, CaseRun, SoakCase};
pub use hostile::PolicyKind;
pub use minimise::minimise;
pub use pool::{CatalogChange, Ending, SoakPool};
pub use run::{SoakFailure, SoakOptions, SoakReport, soak};
pub use step::SoakStep;
pub use violation::{Rule, Violation};
pub use world::SoakPolicy;
