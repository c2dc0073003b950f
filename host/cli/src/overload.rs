//! Goodput past capacity: the same app under each policy, in virtual time at multiples of the load
//! of its peak, and over HTTP with more and more connections.
//!
//! In data order:
//! - [`options`]: the options; [`files`]: configuration, profile and tables in a folder
//! - [`simulated`]: the curve in virtual time
//! - [`clients`]: connections that send again as soon as they are answered; [`live`]: the curve over
//!   HTTP, and the server's health
//! - [`report`]: the tables; [`plot`]: the figure

mod clients;
mod files;
mod live;
mod options;
mod plot;
mod report;
mod simulated;

pub(crate) use options::OverloadOptions;
pub(crate) use report::OverloadReport;

use crate::commands::Failure;
use files::Files;

/// Measures every policy.
pub(crate) fn run(options: &OverloadOptions) -> Result<OverloadReport, Failure> {
    let files = Files::make(options)?;
    let mut report = OverloadReport::default();
    for policy in &options.policies {
        if options.simulates {
            report
                .simulated
                .push(simulated::curve(&files, policy, options)?);
        }
        if options.serves {
            report.live.push(live::curve(&files, policy, options)?);
        }
    }
    Ok(report)
}
