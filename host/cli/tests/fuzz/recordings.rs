//! Recordings: their bytes, and the frames inside of a block whose checksum is right.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use switchyard_core::decision::Decision;
use switchyard_core::ids::{RequestId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::WindowFields;
use switchyard_policy::recording::{Frame, Header, Reader, Writer};
use switchyard_policy::trial;
use tempfile::TempDir;

use super::mutate::Form;
use super::target::Target;

const PREAMBLE: &[u8] = b"switchyard-recording 4\n";
const BLOCK_HEAD: usize = 16;

fn frames(windows: std::ops::Range<usize>) -> Vec<Frame> {
    let catalog = trial::catalog();
    let wants = WindowFields {
        evidence: true,
        completions: true,
        placed: true,
        residents: true,
    };
    let made = trial::made_windows(&catalog, wants);
    let decisions = made[windows].iter().map(|made| {
        let mut plan = Plan::default();
        let dispatch = Dispatch {
            worker: WorkerId(1),
            variant: switchyard_core::ids::VariantId(0),
            from_stage: 0,
            to_stage: 1,
            exit: Some(switchyard_core::ids::ExitId(0)),
            place: 0,
            size: 0,
        };
        plan.dispatch(dispatch, [RequestId(1), RequestId(2)]);
        plan.reasons.push((0, "because".to_owned()));
        Frame::Decision(Arc::new(Decision {
            window: made.window.clone(),
            plan,
            by: "edf@1".into(),
            rescue: false,
        }))
    });
    let start = Frame::Start(Box::new(Header::new("main", catalog)));
    [start, Frame::Policy(None)]
        .into_iter()
        .chain(decisions)
        .chain([Frame::Gap(3)])
        .collect()
}

fn written(file: &Path, frames: &[Frame]) -> Vec<u8> {
    let mut writer = Writer::create(file).unwrap();
    for frame in frames {
        writer.write(frame).unwrap();
    }
    writer.flush().unwrap();
    std::fs::read(file).unwrap()
}

fn all(file: &Path) -> Result<Vec<Frame>, String> {
    let reader = Reader::open(file).map_err(|error| error.to_string())?;
    let frames: Result<Vec<Frame>, _> = reader.collect();
    frames.map_err(|error| error.to_string())
}

pub(crate) fn read_file(folder: &Path, bytes: &[u8]) -> Result<(), String> {
    let file = folder.join("mutated.swr");
    std::fs::write(&file, bytes).unwrap();
    let frames = all(&file)?;
    let again = written(&folder.join("again.swr"), &frames);
    // Not the frames: NaN is not equal to itself.
    let twice = written(
        &folder.join("twice.swr"),
        &all(&folder.join("again.swr")).unwrap(),
    );
    assert_eq!(twice, again);
    // A recorder continues the same file, or refuses it with a reason.
    let (continued, _) = Writer::append(&file, u64::MAX).map_err(|error| error.to_string())?;
    drop(continued);
    assert_eq!(all(&file).unwrap().len(), frames.len());
    Ok(())
}

#[test]
fn recordings() {
    let folder = TempDir::new().unwrap();
    let seeds =
        [0..2, 3..8].map(|windows| written(&folder.path().join("seed.swr"), &frames(windows)));
    let target = Target {
        name: "recording",
        seeds: seeds.to_vec(),
        form: Form::Binary,
        executions: 1_000,
        accepted_min: 0.05,
        memory_max: (4 << 20, 1_024),
    };
    target.run(|bytes| read_file(folder.path(), bytes));
}

/// A recording of one block with these frames, in postcard's encoding.
fn wrapped(frames: &[u8]) -> Vec<u8> {
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(frames).unwrap();
    let stored = packer.finish().unwrap();
    let mut crc = flate2::Crc::new();
    crc.update(frames);
    let mut file = [PREAMBLE, b"SWBK"].concat();
    for field in [stored.len() as u32, frames.len() as u32, crc.sum()] {
        file.extend(field.to_le_bytes());
    }
    file.extend(stored);
    file
}

fn unwrapped(file: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    let stored = &file[PREAMBLE.len() + BLOCK_HEAD..];
    DeflateDecoder::new(stored)
        .read_to_end(&mut frames)
        .unwrap();
    frames
}

pub(crate) fn read_frames(folder: &Path, frames: &[u8]) -> Result<(), String> {
    read_file(folder, &wrapped(frames))
}

#[test]
fn frames_of_recordings() {
    let folder = TempDir::new().unwrap();
    let seeds = [0..2, 3..5, 7..8]
        .map(|windows| unwrapped(&written(&folder.path().join("seed.swr"), &frames(windows))));
    let target = Target {
        name: "recorded frames",
        seeds: seeds.to_vec(),
        form: Form::Binary,
        executions: 800,
        accepted_min: 0.08,
        memory_max: (8 << 20, 256),
    };
    target.run(|frames| read_frames(folder.path(), frames));
}
