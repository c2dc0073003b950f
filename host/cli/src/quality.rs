//! Quality of a model, measured on a file of labelled rows.
//!
//! In data order:
//! - `fault`: the place of a mistake in a file
//! - `element`: a number or a text of a file as an element of an input
//! - `table`: the rows of a file by input, and their labels; made by `csv`, `jsonl`, `npz` (its
//!   arrays: `npy`) and `images`, chosen by `open`
//! - `truth`: labels as classes or numbers
//! - `answers`: the model's answers to all rows
//! - `metric`: correlations; `measured`: the result; `record`: the cards with it

mod answers;
mod csv;
mod element;
mod fault;
mod images;
mod jsonl;
mod measured;
mod metric;
mod npy;
mod npz;
mod open;
mod record;
mod table;
mod truth;

pub(crate) use self::images::class_names;
pub(crate) use self::measured::{Measured, measure};
pub(crate) use self::open::{LABEL, open};
pub(crate) use self::record::{on_app_card, on_card, on_files};
