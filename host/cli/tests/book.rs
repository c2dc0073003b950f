//! The book in docs/, held to the program: links resolve, configurations and cards are read,
//! the contract has every definition, every setting of a policy has its row, and the tutorial's
//! commands are run.

// Symbolic links and process groups.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]
#![allow(missing_docs)]

#[path = "cli/binary.rs"]
#[allow(dead_code)]
mod binary;

#[path = "../../../tests/common/free_address.rs"]
mod free_address;

mod book {
    mod block;
    mod pages;
    mod policies;
    mod render;
    mod tutorial;
}
