//! Addresses for the programs of tests.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// The lowest port, and the number of ports. Systems give higher ones to clients and to port 0, so
/// no connection can take a port from a program that starts, or that starts again.
const FIRST: u16 = 10_000;
const COUNT: u16 = 6_000;

/// An address of this machine at which no program listens, another one at each call.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes next to each other begin apart.
    let own = std::process::id() % u32::from(COUNT / 64) * 64;
    loop {
        let turn = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + ((own + turn) % u32::from(COUNT)) as u16;
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(at).is_ok() {
            return at;
        }
    }
}
