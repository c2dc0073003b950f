//! One table: what to run in every state.
//!
//! The file, little endian:
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | `SWYTABLE` |
//! | 4 | [`FORMAT`] |
//! | 2 | variants |
//! | 2 | N, the longest queue |
//! | 4 | slacks |
//! | 8 | load in requests per second, a double |
//! | 32 | hash of what it was made from |
//! | 2 per action | variant and batch: for each queue length from 1 to N all slacks, then the full state |
//! | 8 | FNV-1a of all before |

use crate::error::{Reason, TablesError};
use crate::grid::SlackGrid;
use crate::set::{FORMAT, Set, TableEntry};

const MAGIC: &[u8; 8] = b"SWYTABLE";
const HEADER: usize = 60;
const TRAILER: usize = 8;

/// What to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Position in the set's list of variants.
    pub variant: u8,
    /// How many of the requests with the earliest deadlines; 0 for an empty queue, else at least 1.
    pub batch: u8,
}

/// What to run in every state, for one load.
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
    /// The file is none of the set's, or what in it is at fault.
    pub fn parse(file: &str, bytes: &[u8], set: &Set) -> Result<Self, TablesError> {
        let fault = |field: &str, reason| Err(TablesError::new(file, field, reason));
        let Some(entry) = set.tables.iter().find(|entry| entry.file == file) else {
            return fault("index", Reason::Missing);
        };
        let expected = HEADER + 2 * set.actions() + TRAILER;
        let header = match bytes.get(..HEADER) {
            Some(header) if header.starts_with(MAGIC) => header,
            Some(_) => return fault("magic", Reason::Range("is not that of a table")),
            None => {
                let found = bytes.len();
                return fault("file", Reason::Length { expected, found });
            }
        };
        let wanted = Self::header(set, entry);
        for (field, from, to) in FIELDS {
            if header[from..to] != wanted[from..to] {
                let [expected, found] = [&wanted[..], header].map(|header| {
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
    /// There are too few or too many actions, or one names no variant or no batch that can be.
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
                return fault(field(), Reason::Range("names no variant of the set"));
            }
            let queued = (a / slacks + 1).min(set.queue_max as usize);
            if !(1..=queued).contains(&usize::from(action.batch)) {
                let rule = "must have a batch from 1 to the queue's length";
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

    /// The table's file.
    pub fn to_bytes(&self, entry: &TableEntry, set: &Set) -> Vec<u8> {
        let mut bytes = Self::header(set, entry).to_vec();
        for action in &self.actions {
            bytes.extend([action.variant, action.batch]);
        }
        let sum = fnv(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// Requests per second that it is for, all workers together.
    pub fn load_rps(&self) -> f64 {
        self.load_rps
    }

    /// What to run when so many requests wait and the earliest deadline is so far away. Beyond N
    /// requests it is the full state's action; an empty queue has nothing to run.
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
        // The set's check bounds all three.
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

/// Fields of the header behind the magic number: name, first byte, one past the last.
const FIELDS: [(&str, usize, usize); 6] = [
    ("format", 8, 12),
    ("variants", 12, 14),
    ("queue_max", 14, 16),
    ("slacks", 16, 20),
    ("load_rps", 20, 28),
    ("hash", 28, 60),
];

/// Hexadecimal, as the bytes stand in the file.
fn shown(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.fold("0x".to_owned(), |text, byte| text + &byte)
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
