//! The frames of a recording, with a progress bar.

use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use switchyard_policy::recording::{CutOff, Frame, Reader};

use crate::commands::failure::Failure;
use crate::commands::print;

/// Reads a recording to its end. Returns the last block if it is not complete, after a note to
/// stderr.
pub(super) fn for_each_frame(
    trace: &Path,
    mut take: impl FnMut(Frame) -> Result<(), Failure>,
) -> Result<Option<CutOff>, Failure> {
    let mut reader = Reader::open(trace).map_err(Failure::input)?;
    let length = std::fs::metadata(trace).map_or(0, |file| file.len());
    let bar = ProgressBar::new(length).with_style(style());
    let mut offset = 0;
    while let Some(frame) = reader.next() {
        let frame = frame.map_err(Failure::input)?;
        if reader.offset() > offset {
            offset = reader.offset();
            bar.set_position(offset);
        }
        take(frame)?;
    }
    bar.finish_and_clear();
    let cut_off = reader.cut_off();
    if let Some(cut_off) = cut_off {
        let file = trace.display();
        print::note(format_args!(
            "{file}: the last block, at byte {}, is not complete: its {} bytes are ignored",
            cut_off.offset, cut_off.bytes
        ));
    }
    Ok(cut_off)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("replaying {wide_bar} {bytes}/{total_bytes} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
