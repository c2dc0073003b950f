//! Asks WASI for everything and writes down what it gets.

use std::cell::Cell;

use guest_base::contract::{Catalog, Plan, Reason, Window};
use guest_base::{Subject, empty_plan};

#[allow(missing_docs, clippy::all)] // Generated; the shapes are WASI's.
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "worldly" });
}

use bindings::wasi::cli::{environment, stdin, stdout};
use bindings::wasi::clocks::{monotonic_clock, wall_clock};
use bindings::wasi::filesystem::preopens;
use bindings::wasi::http::outside;
use bindings::wasi::io::poll;
use bindings::wasi::random::random;
use bindings::wasi::sockets::tcp_create_socket;

thread_local! {
    static ESCAPES: Cell<bool> = const { Cell::new(false) };
}

/// The guest.
pub struct Worldly;

impl Subject for Worldly {
    const NAME: &'static str = "worldly";

    fn configure(_catalog: Catalog, settings: String) -> Result<(), String> {
        ESCAPES.set(settings.contains("\"escape\""));
        Ok(())
    }

    fn schedule(_window: Window) -> Result<Plan, String> {
        if ESCAPES.get() {
            outside::call();
        }
        let text = [surroundings(), clocks(), chance(), streams()].join("; ");
        let mut plan = empty_plan();
        plan.reasons.push(Reason { dispatch: 0, text });
        Ok(plan)
    }
}

fn surroundings() -> String {
    format!(
        "environment {} arguments {} cwd {:?} directories {} socket {:?}",
        environment::get_environment().len(),
        environment::get_arguments().len(),
        environment::initial_cwd(),
        preopens::get_directories().len(),
        tcp_create_socket::create_tcp_socket(0).err(),
    )
}

/// An hour is waited for, and none passes.
fn clocks() -> String {
    let hour = monotonic_clock::subscribe_duration(3_600_000_000_000);
    hour.block();
    let ready = poll::poll(&[&hour, &stdout::get_stdout().subscribe()]);
    let wall = wall_clock::now();
    format!(
        "now {} wall {}.{:09} ready {} {ready:?}",
        monotonic_clock::now(),
        wall.seconds,
        wall.nanoseconds,
        hour.ready(),
    )
}

fn chance() -> String {
    format!(
        "random {} {:?}",
        random::get_random_u64(),
        random::get_random_bytes(3)
    )
}

fn streams() -> String {
    let out = stdout::get_stdout();
    let room = out.check_write().unwrap_or(0);
    let wrote = out
        .blocking_write_and_flush(b"a line\nand half of one")
        .is_ok();
    let read = stdin::get_stdin().blocking_read(8);
    format!("room {room} wrote {wrote} read {}", read.is_ok())
}

guest_base::guest!(Worldly);
