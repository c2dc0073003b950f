//! Canaries: a share of the requests goes to a candidate policy, and a sequential test compares it with
//! the policy that serves.
//!
//! A request belongs to the member on duty when it arrives, until it ends. Time is cut into rounds; each
//! has a slot of the candidate and a slot of equal length of the *baseline*, a second instance of the
//! serving policy, at random places. The rest is the serving policy's. Baseline and candidate are
//! compared: both begin with the same state, see arrivals at the rate at which they would alone, and share
//! the workers with the serving policy. Under two equal policies the sign of a round's difference is that of
//! a coin, which makes the test exact (`test`).
//!
//! In data order:
//! - `slots`: the member on duty
//! - `split`: a window's part for one member; `merge`: the members' plans as one
//! - `routing`: the routes of the member on duty
//! - `member`: one policy with its trigger and its faults
//! - `tally`: the worth of each round's answers; `test`: their differences; `rule`: the verdict
//! - `report`: all of it, for the driver
//! - `composite`: the policy that the scheduler asks

mod composite;
mod member;
mod merge;
mod report;
mod routing;
mod rule;
mod slots;
mod split;
mod tally;
mod test;

pub use composite::{Canary, CanaryParts};
pub use report::{CanaryReport, CanaryWatch, MemberReport};
pub use rule::{CanaryRule, PromoteIf, Verdict, Why};
pub use slots::{Member, SHARE_MAX, SLOT_MIN};
