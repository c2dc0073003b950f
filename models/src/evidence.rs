//! SneakPeek evidence: an estimate of a request's class before a network has run.
//!
//! A small learned network embeds a request's [`Features`](crate::features::Features). The k
//! nearest training points then vote with their labels ([`counts`](SneakPeek::counts)), or a linear
//! classifier casts a single vote ([`vote`](SneakPeek::vote)). Either way the counts are the
//! multinomial observation y of SneakPeek's Dirichlet posterior (eq. 9-11). The training points are
//! balanced over the classes: the counts carry the evidence of the input, the prior the frequency
//! of each class.
//!
//! [`SneakPeek`] reads an evidence file and answers, [`EvidenceNetwork`] is trained and written.

mod classifier;
mod embedding;
mod file;
mod layer;
mod neighbours;
mod network;
mod sneakpeek;

pub use self::network::EvidenceNetwork;
pub use self::sneakpeek::SneakPeek;
