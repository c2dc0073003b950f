//! One table: the action of every state.
//!
//! The file, little endian:
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | `SWYTABLE` |
//! | 4 | [`FORMAT`] |
//! | 2 | number of variants |
//! | 2 | N, the longest queue |
//! | 4 | number of slacks |
//! | 8 | load in requests per second, a double |
//! | 32 | hash of its inputs |
//! | 2 per action | variant and batch: for each queue length from 1 to N all slacks, then the full state |
//! | 8 | FNV-1a of all bytes before |

use crate::error::{Reason, TablesError};
use crate::grid::SlackGrid;
use crate::set::{FORMAT, Set, TableEntry};

const MAGIC: &[u8; 8] = b"SWYTABLE";
const HEADER: usize = 60;
const TRAILER: usize = 8;

/// The action of a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Index in the set's variants.
    pub variant: u8,
    /// Number of requests, earliest deadlines first; 0 for an empty queue, otherwise at least 1.
    pub batch: u8,
}

/// The actions of all states, for one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    load_rps: f64,
    queue_max: u32,
    grid: SlackGrid,
    actions: Box<[Action]>,
}

// === impl Table ===

impl Table {
    /// Reads a table's file and checks it against its set.
    ///
    /// # Errors
    /// The file is not in the set, or the field at fault.
    pub fn parse(file: &str, bytes: &[u8], set: &Set) -> Result<Self, TablesError> {
        let fault = |field: &str, reason| Err(TablesError::new(file, field, reason));
        let Some(entry) = set.tables.iter().find(|entry| entry.file == file) else {
            return fault("index", Reason::Missing);
        };
        let expected = HEADER + 2 * set.actions() + TRAILER;
        let header = match bytes.get(..HEADER) {
            Some(header) if header.starts_with(MAGIC) => header,
            Some(_) => return fault("magic", Reason::Range("must be SWYTABLE")),
            None => {
                let found = bytes.len();
                return fault("file", Reason::Length { expected, found });
            }
        };
        let expected_header = Self::header(set, entry);
        for (field, from, to) in FIELDS {
            if header[from..to] != expected_header[from..to] {
                let [expected, found] = [&expected_header[..], header].map(|header| {
                    let field = &header[from..to];
                    shown(field)
                });
                return fault(field, Reason::Differs { expected, found });
            }
        }
        if bytes.len() != expected {
            let found = bytes.len();
            return fault("file", Reason::Length { expected, found });
        }
        let (body, sum) = bytes.split_at(expected - TRAILER);
        if sum != fnv(body).to_le_bytes() {
            return fault(
                "checksum",
                Reason::Differs {
                    expected: shown(&fnv(body).to_le_bytes()),
                    found: shown(sum),
                },
            );
        }
        let actions: Box<[Action]> = body[HEADER..]
            .chunks_exact(2)
            .map(|pair| Action {
                variant: pair[0],
                batch: pair[1],
            })
            .collect();
        Self::new(entry, set, actions)
    }

    /// A table of a set, from its actions in the file's order.
    ///
    /// # Errors
    /// A wrong number of actions, or an action with an unknown variant or an impossible batch.
    pub fn new(entry: &TableEntry, set: &Set, actions: Box<[Action]>) -> Result<Self, TablesError> {
        let fault = |field: String, reason| Err(TablesError::new(&entry.file, field, reason));
        if actions.len() != set.actions() {
            let [expected, found] = [set.actions(), actions.len()].map(|n| 2 * n);
            return fault("actions".to_owned(), Reason::Length { expected, found });
        }
        let slacks = set.slack_us.len();
        for (a, action) in actions.iter().enumerate() {
            let field = || format!("actions[{a}]");
            if usize::from(action.variant) >= set.variants.len() {
                return fault(
                    field(),
                    Reason::Range("must be the index of a variant of the set"),
                );
            }
            let queued = (a / slacks + 1).min(set.queue_max as usize);
            if !(1..=queued).contains(&usize::from(action.batch)) {
                let rule = "must have a batch of 1 to the queue's length";
                return fault(field(), Reason::Range(rule));
            }
        }
        Ok(Self {
            load_rps: entry.load_rps,
            queue_max: set.queue_max,
            grid: set.grid(),
            actions,
        })
    }

    /// The bytes of the table's file.
    pub fn to_bytes(&self, entry: &TableEntry, set: &Set) -> Vec<u8> {
        let mut bytes = Self::header(set, entry).to_vec();
        for action in &self.actions {
            bytes.extend([action.variant, action.batch]);
        }
        let sum = fnv(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// The load in requests per second, of all workers together.
    pub fn load_rps(&self) -> f64 {
        self.load_rps
    }

    /// The action for `queued` requests whose first deadline is in `slack_us`. Beyond N requests
    /// the full state's action; for an empty queue none.
    pub fn action(&self, queued: u32, slack_us: i64) -> Action {
        let state = match queued {
            0 => return Action::default(),
            n if n > self.queue_max => self.actions.len() - 1,
            n => (n - 1) as usize * self.grid.points() + self.grid.position(slack_us),
        };
        self.actions.get(state).copied().unwrap_or_default()
    }

    /// All actions, in the file's order.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    fn header(set: &Set, entry: &TableEntry) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(MAGIC);
        put(&FORMAT.to_le_bytes());
        // `Set::check` bounds all three.
        put(&(set.variants.len() as u16).to_le_bytes());
        put(&(set.queue_max as u16).to_le_bytes());
        put(&(set.slack_us.len() as u32).to_le_bytes());
        put(&entry.load_rps.to_bits().to_le_bytes());
        let digit = |d: u8| (d as char).to_digit(16).unwrap_or(0) as u8;
        for pair in entry.hash.as_bytes().chunks_exact(2) {
            put(&[digit(pair[0]) << 4 | digit(pair[1])]);
        }
        header
    }
}

/// Fields of the header after the magic number: name, first byte, one past the last.
const FIELDS: [(&str, usize, usize); 6] = [
    ("format", 8, 12),
    ("variants", 12, 14),
    ("queue_max", 14, 16),
    ("slacks", 16, 20),
    ("load_rps", 20, 28),
    ("hash", 28, 60),
];

/// Hexadecimal, in the order of the file.
fn shown(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.fold("0x".to_owned(), |text, byte| text + &byte)
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
