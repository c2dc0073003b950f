//! Recordings: written frames are read again, also after a crash. Damaged files are refused.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use switchyard_core::decision::Decision;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Lane, Plan, Route};
use switchyard_core::policy::WindowFields;
use switchyard_core::time::Time;
use switchyard_policy::history::ContentHash;
use switchyard_policy::recording::{
    Corruption, Frame, Header, PolicyRecord, Reader, RecordingError, Writer,
};
use switchyard_policy::trial;
use tempfile::TempDir;

/// Length of the first line.
const PREAMBLE: usize = "switchyard-recording 4\n".len();

/// Hash of the frames of [`every_frame`]. If it changes while `trial` does not, the format
/// has changed: then increase `FORMAT_VERSION`.
const FORMAT_4: &str = "b81e77000c65516e88f4c0a1d311d7b3b4585da714f187a190d2dfd672228c46";

fn everything() -> WindowFields {
    WindowFields {
        evidence: true,
        completions: true,
        placed: true,
        residents: true,
    }
}

fn policy(label: &str) -> PolicyRecord {
    PolicyRecord {
        label: label.to_owned(),
        hash: "ab".repeat(32),
        code: "cd".repeat(32),
        settings: r#"{"tau":4}"#.to_owned(),
        wants: everything(),
    }
}

fn start() -> Frame {
    Frame::Start(Box::new(Header {
        made_by: "switchyard 0.1.0".to_owned(),
        simulated: false,
        pool: "main".to_owned(),
        seed: 7,
        window_budget_us: 5_000,
        policy_memory_bytes: 64 << 20,
        catalog: trial::catalog(),
        policy: None,
    }))
}

/// A plan with every kind of entry.
fn plan() -> Plan {
    let mut plan = Plan::default();
    let dispatch = Dispatch {
        worker: WorkerId(1),
        variant: VariantId(1),
        from_stage: 0,
        to_stage: 2,
        exit: Some(ExitId(1)),
        place: u32::MAX,
        size: 0,
    };
    plan.dispatch(dispatch, [RequestId(1), RequestId(2)]);
    plan.revokes.push(BatchId(3));
    plan.rejects.push(RequestId(4));
    plan.answers.push(RequestId(5));
    plan.routes.push(Route {
        app: AppId(0),
        lanes: vec![Lane {
            worker: WorkerId(0),
            variant: VariantId(0),
            exit: ExitId(0),
            weight: 1.0 / 3.0,
            min_batch: 1,
            max_batch: 4,
            capacity: 16,
        }],
    });
    plan.wake = Some(Time(1_000_000));
    plan.reasons.push((0, "because".to_owned()));
    plan
}

fn decisions() -> Vec<Frame> {
    let cases = trial::made_windows(&trial::catalog(), everything());
    cases
        .into_iter()
        .map(|case| {
            Frame::Decision(Arc::new(Decision {
                window: case.window,
                plan: plan(),
                by: "sneakpeek@0.1.0".into(),
                rescue: false,
            }))
        })
        .collect()
}

fn every_frame() -> Vec<Frame> {
    let mut frames = vec![start(), Frame::Policy(Some(policy("sneakpeek@0.1.0")))];
    frames.extend(decisions());
    frames.extend([
        Frame::Gap(12),
        Frame::Policy(None),
        Frame::Catalog(Box::new(trial::changed_catalog())),
    ]);
    frames
}

fn file() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("windows.rec");
    (folder, file)
}

fn write(file: &Path, frames: &[Frame]) {
    let (mut writer, cut) = Writer::append(file, u64::MAX).unwrap();
    assert_eq!(cut, 0);
    for frame in frames {
        writer.write(frame).unwrap();
    }
    writer.flush().unwrap();
}

fn read(file: &Path) -> Result<Vec<Frame>, RecordingError> {
    Reader::open(file)?.collect()
}

/// A file of one block with the given bytes as frames.
fn block(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    let stored = encoder.finish().unwrap();
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    let mut file = b"switchyard-recording 4\nSWBK".to_vec();
    for field in [stored.len() as u32, bytes.len() as u32, crc.sum()] {
        file.extend(field.to_le_bytes());
    }
    file.extend(stored);
    file
}

#[test]
fn written_frames_are_read() {
    let (_folder, file) = file();
    let frames = every_frame();
    write(&file, &frames);
    assert_eq!(read(&file).unwrap(), frames);
    // A second life of the server, in the same file.
    write(&file, &frames);
    assert_eq!(read(&file).unwrap(), [&frames[..], &frames[..]].concat());
    let text = fs::read(&file).unwrap();
    assert!(text.starts_with(b"switchyard-recording 4\n"));
}

#[test]
fn many_blocks_are_one_recording_and_are_compressed() {
    let (_folder, file) = file();
    let mut frames = vec![start()];
    for _ in 0..120 {
        frames.extend(decisions());
    }
    write(&file, &frames);
    assert_eq!(read(&file).unwrap(), frames);
    let bytes: usize = frames
        .iter()
        .map(|frame| postcard::to_allocvec(frame).unwrap().len())
        .sum();
    let stored = fs::metadata(&file).unwrap().len() as usize;
    assert!(bytes > 1 << 20, "several blocks: {bytes} bytes");
    assert!(stored * 2 < bytes, "{stored} of {bytes} bytes");
}

#[test]
fn the_bytes_of_format_version_4_are_unchanged() {
    let bytes: Vec<Vec<u8>> = every_frame()
        .iter()
        .map(|frame| postcard::to_allocvec(frame).unwrap())
        .collect();
    let parts: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    assert_eq!(ContentHash::of(&parts).to_hex(), FORMAT_4);
}

#[test]
fn after_a_crash_whole_blocks_are_read_and_appended_to() {
    let (folder, file) = file();
    let frames = every_frame();
    write(&file, &frames[..4]);
    let whole = fs::read(&file).unwrap();
    write(&file, &frames[4..8]);
    let all = fs::read(&file).unwrap();
    for end in [1, 4, 15, 16, 17, all.len() - whole.len() - 1] {
        let cut = folder.path().join("cut.rec");
        fs::write(&cut, &all[..whole.len() + end]).unwrap();
        let mut reader = Reader::open(&cut).unwrap();
        let before: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(before, frames[..4], "{end}");
        let cut_off = reader.cut_off().unwrap();
        assert_eq!(
            (cut_off.offset, cut_off.bytes),
            (whole.len() as u64, end as u64)
        );

        let (mut writer, lost) = Writer::append(&cut, u64::MAX).unwrap();
        assert_eq!(lost, end as u64);
        writer.write(&frames[4]).unwrap();
        writer.flush().unwrap();
        assert_eq!(read(&cut).unwrap(), frames[..5]);
    }
    let mut reader = Reader::open(&file).unwrap();
    assert_eq!(reader.by_ref().count(), 8);
    assert_eq!(reader.cut_off(), None);
}

/// A damaged byte is noticed or harmless: the last byte of a block may have unused bits.
#[test]
fn a_damaged_byte_is_noticed_at_every_position() {
    let (folder, file) = file();
    let written = every_frame();
    write(&file, &written[..3]);
    let second = fs::metadata(&file).unwrap().len() as usize;
    write(&file, &written[3..5]);
    let good = fs::read(&file).unwrap();
    let damaged = folder.path().join("damaged.rec");
    // Every byte of the heads, and some of the compressed bytes.
    let heads = (0..PREAMBLE + 16).chain(second..second + 16);
    let ends = [second - 1, good.len() - 1];
    for at in heads.chain(ends).chain((0..good.len()).step_by(61)) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(&damaged, &bytes).unwrap();
        let mut reader = match Reader::open(&damaged) {
            Ok(reader) => reader,
            Err(error) => {
                assert!(at < PREAMBLE && error.offset == 0, "byte {at}: {error}");
                continue;
            }
        };
        let (read, errors): (Vec<_>, Vec<_>) = reader.by_ref().partition(Result::is_ok);
        let read: Vec<Frame> = read.into_iter().map(Result::unwrap).collect();
        assert_eq!(read, written[..read.len()], "byte {at}");
        match (errors.first(), reader.cut_off()) {
            (Some(Err(error)), None) => {
                let offset = error.offset as usize;
                assert!((PREAMBLE..=at).contains(&offset), "byte {at}: {error}");
                let message = error.to_string();
                assert!(
                    message.contains(&format!("damaged.rec: at byte {offset}: ")),
                    "{message}"
                );
            }
            // A block with a greater length in its head looks cut off.
            (None, Some(cut_off)) => assert!(cut_off.offset as usize <= at),
            (None, None) => assert_eq!(read.len(), 5, "byte {at}"),
            both => panic!("byte {at}: {both:?}"),
        }
    }
}

#[test]
fn random_frames_in_a_valid_block_are_refused() {
    let (_folder, file) = file();
    let mut random = Pcg64::seed_from_u64(1);
    let honest = postcard::to_allocvec(&start()).unwrap();
    for round in 0..500 {
        let mut bytes: Vec<u8> = match round % 2 {
            0 => honest.clone(),
            _ => Vec::new(),
        };
        bytes.extend((0..random.random_range(1..200)).map(|_| random.random::<u8>()));
        // Random bytes may decode, or need bytes past their end.
        fs::write(&file, block(&bytes)).unwrap();
        if let Err(error) = read(&file) {
            assert_eq!(error.offset, PREAMBLE as u64);
            assert!(matches!(error.reason, Corruption::Frame { .. }), "{error}");
        }
    }
}

fn refusal(frames: &[Frame]) -> String {
    let (_folder, file) = file();
    write(&file, frames);
    let error = read(&file).unwrap_err().to_string();
    let (_, reason) = error.split_once("windows.rec: at byte 23: ").unwrap();
    reason.to_owned()
}

#[test]
fn frames_that_do_not_fit_each_other_are_refused() {
    let misshapen = |change: fn(&mut Decision)| {
        let Frame::Decision(decision) = &decisions()[1] else {
            panic!("a decision");
        };
        let mut decision = Decision::clone(decision);
        change(&mut decision);
        refusal(&[start(), Frame::Decision(Arc::new(decision))])
    };
    assert_eq!(
        refusal(&[Frame::Gap(1)]),
        "frame 0 of the block: nothing has started yet"
    );
    assert_eq!(
        misshapen(|d| d.window.requests.app.clear()),
        "frame 1 of the block: window 2: requests: of the wrong length"
    );
    let reasons = [
        misshapen(|d| d.window.requests.app[0] = 9),
        misshapen(|d| d.window.requests.evidence_counts.push(1)),
        misshapen(|d| d.window.workers.up.push(1)),
        misshapen(|d| d.window.residents[0].variant = VariantId(9)),
        misshapen(|d| d.plan.dispatches[0].exit = Some(ExitId(9))),
        misshapen(|d| d.plan.members.clear()),
        misshapen(|d| d.plan.routes[0].app = AppId(9)),
    ];
    let expected = [
        "requests.app: ",
        "requests.evidence_counts: ",
        "workers: ",
        "residents: ",
        "plan.dispatches: ",
        "plan.members: ",
        "plan.routes: ",
    ];
    for (reason, expected) in reasons.iter().zip(expected) {
        assert!(
            reason.contains(&format!("window 2: {expected}")),
            "{reason}"
        );
    }
    let Frame::Start(mut header) = start() else {
        panic!("a start");
    };
    header.catalog.apps[0].prior.clear();
    let reason = refusal(&[Frame::Start(header)]);
    assert!(reason.contains("catalog: apps[0].prior"), "{reason}");
}

#[test]
fn other_files_are_neither_read_nor_written() {
    let (_folder, file) = file();
    for (text, reason) in [
        ("{}", "not a recording of windows"),
        ("switchyard-recording 4", "not a recording of windows"),
        (
            "switchyard-recording 1\nxyz",
            "format 1, this program reads format 4",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let error = Reader::open(&file).map(drop).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("windows.rec: at byte 0: {reason}")),
            "{error}"
        );
        let error = Writer::append(&file, u64::MAX).map(drop).unwrap_err();
        assert!(error.to_string().ends_with(reason), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "unchanged");
    }
    let error = Reader::open(Path::new("/nowhere/x.rec")).map(drop);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("/nowhere/x.rec: ")
    );
}

#[test]
fn a_second_writer_is_refused() {
    let (_folder, file) = file();
    let (writer, _) = Writer::append(&file, u64::MAX).unwrap();
    let error = Writer::append(&file, u64::MAX).map(drop).unwrap_err();
    assert!(matches!(error.reason, Corruption::Busy), "{error}");
    drop(writer);
    Writer::append(&file, u64::MAX).unwrap();
}

#[test]
fn a_recording_ends_at_its_largest_size() {
    let (_folder, file) = file();
    let bytes_max = 40_000;
    let (mut writer, _) = Writer::append(&file, bytes_max).unwrap();
    writer.write(&start()).unwrap();
    writer.flush().unwrap();
    let error = loop {
        let written = decisions().iter().try_for_each(|frame| writer.write(frame));
        if let Err(error) = written.and_then(|()| writer.flush()) {
            break error;
        }
    };
    assert!(error.is_full(), "{error}");
    assert!(fs::metadata(&file).unwrap().len() <= bytes_max);
    let frames = read(&file).unwrap();
    assert_eq!(frames[0], start());
    drop(writer);
    let (mut writer, _) = Writer::append(&file, 1_000).unwrap();
    writer.write(&start()).unwrap();
    assert!(writer.flush().unwrap_err().is_full());
}
