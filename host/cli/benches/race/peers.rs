//! Other servers with the same model, started where they have been built: `tests/peers`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::contender::{Contender, free_ports};
use super::model::{NAMES, Names};

/// Largest batch of furnace, as in its own benchmarks.
const FURNACE_BATCH: &str = "64";

/// One that can be built for the race.
struct Peer {
    name: &'static str,
    /// Environment variable with another path of the program.
    variable: &'static str,
    program: &'static str,
    takes_binary: bool,
    names: Names,
    command: fn(&Path, &Self, u16, &Path) -> Command,
}

const PEERS: [Peer; 3] = [
    Peer {
        name: "furnace",
        variable: "SWITCHYARD_FURNACE",
        program: "target/peers/release/race-furnace",
        takes_binary: true,
        // furnace ignores the model's own names if it has one input and one output.
        names: Names {
            input: "input",
            output: "output",
        },
        command: furnace,
    },
    Peer {
        name: "triton",
        variable: "SWITCHYARD_TRITON",
        program: "target/triton/bin/python",
        takes_binary: true,
        names: NAMES,
        command: python,
    },
    Peer {
        name: "mlserver",
        variable: "SWITCHYARD_MLSERVER",
        program: "target/mlserver/bin/python",
        takes_binary: false,
        names: NAMES,
        command: python,
    },
];

/// Starts those that have been built, and says which have not.
pub(crate) fn built(zoo: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<Contender> {
    let mut started = Vec::new();
    for peer in PEERS.iter().filter(|peer| is_wanted(peer.name)) {
        let program = peer.program();
        if !program.exists() {
            let (name, program) = (peer.name, program.display());
            eprintln!("{name} is not raced: no {program}, see tests/peers/README.md");
            continue;
        }
        // Triton takes three in a row.
        let port = free_ports(3);
        let mut command = (peer.command)(&program, peer, port, zoo);
        let mut contender = Contender::start(peer.name, port, &mut command);
        contender.takes_binary = peer.takes_binary;
        contender.names = peer.names;
        started.push(contender);
    }
    started
}

/// Its model runs on the thread that asks: candle would take all cores for a product of one row.
fn furnace(program: &Path, _: &Peer, port: u16, zoo: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(port.to_string()).arg(zoo).arg(FURNACE_BATCH);
    command.env("RAYON_NUM_THREADS", "1");
    command
}

/// `serve.py` next to the peer's description.
fn python(program: &Path, peer: &Peer, port: u16, zoo: &Path) -> Command {
    let script = root().join("tests/peers").join(peer.name).join("serve.py");
    let mut command = Command::new(program);
    command.arg(script).arg(port.to_string()).arg(zoo);
    // They log every model and request, which would disturb table and measurement.
    command.stderr(std::process::Stdio::null());
    command
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

// === impl Peer ===

impl Peer {
    fn program(&self) -> PathBuf {
        std::env::var_os(self.variable).map_or_else(|| root().join(self.program), PathBuf::from)
    }
}
