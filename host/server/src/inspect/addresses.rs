//! The addresses of the ports.

use super::findings::Findings;
use crate::sockets::BoundPort;

/// Refuses addresses that cannot be listened on. Notes those on which a server listens: it may be the one whose
/// changed configuration is looked at.
pub(super) fn inspect(findings: &mut Findings<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for (field, address) in findings.config.server.addresses() {
        let Err(error) = BoundPort::check(address) else {
            continue;
        };
        let reason = format!("{address}: {error}{}", error.way_out(field, address));
        match error.is_in_use() {
            true => notes.push(format!("server.{field}: {reason}, unless it is this one")),
            false => findings.refuse(&format!("server.{field}"), &reason),
        }
    }
    notes
}
