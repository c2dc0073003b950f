//! The program as people and scripts see it: help, exit codes, what it prints, and that the
//! documentation of its configuration is true.

#![allow(clippy::unwrap_used)]

mod cli {
    mod binary;
    mod codes;
    mod configuration;
    mod help;
    mod mistakes;
    mod models;
    mod policy;
    mod prepare;
    mod profile;
    mod replay;
    mod simulate;
}
