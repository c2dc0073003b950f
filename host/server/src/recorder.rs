//! Records a pool's windows and plans: the driver hands over its decisions, a thread encodes,
//! compresses and writes.
//!
//! The driver never waits. When the thread lags by `NOTES_MAX` windows, windows are dropped,
//! counted, and marked as missing in the file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use switchyard_core::decision::Decision;
use switchyard_policy::recording::{Frame, Header, PolicyRecord, RecordingError, Writer};
use switchyard_threads::ServiceThread;

use crate::telemetry::{Counter, Gauge, Registry, names};

/// Windows that may wait to be written. They are the scheduler's own, so that this bounds the
/// memory that a slow disk can take.
const NOTES_MAX: usize = 256;

/// A recorded window is in the file after at most this time.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Where windows are recorded.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The file, which is appended to.
    pub file: PathBuf,
    /// Its size at which recording stops.
    pub bytes_max: u64,
    /// The configuration of policies; the policy itself comes later.
    pub header: Header,
}

/// The driver's end.
pub struct Recorder {
    /// `None` once the thread has given up. Above the thread, so that the channel closes before
    /// the join.
    notes: Option<Sender<Frame>>,
    late: Late,
    dropped: Counter,
    _thread: ServiceThread,
}

/// Notes that found no room, in the order in which they are written before the next one.
#[derive(Default)]
struct Late {
    windows: u64,
    policy: Option<Frame>,
}

/// The thread's end.
struct Writing {
    pool: String,
    writer: Writer,
    /// `None` after the first window: the policy of that moment goes into it.
    header: Option<Header>,
    flushed: Instant,
    recorded: Counter,
    active: Gauge,
}

// === impl Recorder ===

impl Recorder {
    /// Opens the file and starts the thread.
    ///
    /// # Errors
    /// The file cannot be appended to, or the system refuses a thread.
    pub(crate) fn start(
        options: RecordOptions,
        registry: &Registry,
    ) -> Result<Self, RecordingError> {
        let RecordOptions {
            file,
            bytes_max,
            header,
        } = options;
        let pool = header.pool.clone();
        let (writer, cut_off) = Writer::append(&file, bytes_max)?;
        if cut_off > 0 {
            tracing::warn!(pool, file = %file.display(), cut_off, "a recording was not whole: its end is cut off");
        }
        let labels = [("pool", pool.as_str())];
        let dropped = registry.counter(names::RECORDING_DROPPED, labels);
        let writing = Writing {
            writer,
            header: Some(header),
            flushed: Instant::now(),
            recorded: registry.counter(names::RECORDED_WINDOWS, labels),
            active: registry.gauge(names::RECORDING_ACTIVE, labels),
            pool: pool.clone(),
        };
        let (notes, inbox) = bounded(NOTES_MAX);
        let thread = ServiceThread::spawn(format!("{pool}-recorder"), move || writing.run(&inbox))
            .map_err(|error| RecordingError::unwritable(&file, error))?;
        Ok(Self {
            notes: Some(notes),
            late: Late::default(),
            dropped,
            _thread: thread,
        })
    }

    /// Another policy is active.
    pub(crate) fn policy(&mut self, policy: Option<PolicyRecord>) {
        self.late.policy = Some(Frame::Policy(policy));
        self.catch_up();
    }

    /// A window was decided.
    pub(crate) fn decided(&mut self, decision: Arc<Decision>) {
        let caught_up = self.catch_up();
        if self.notes.is_none() {
            return;
        }
        if !caught_up || !self.note(Frame::Decision(decision)) {
            self.late.windows += 1;
            self.dropped.increment(1);
        }
    }

    /// Notes the late notes; false if there is still no room.
    fn catch_up(&mut self) -> bool {
        if self.late.windows > 0 {
            if !self.note(Frame::Gap(self.late.windows)) {
                return false;
            }
            self.late.windows = 0;
        }
        match self.late.policy.take() {
            None => true,
            Some(frame) if self.note(frame.clone()) => true,
            Some(frame) => {
                self.late.policy = Some(frame);
                false
            }
        }
    }

    fn note(&mut self, frame: Frame) -> bool {
        match self.notes.as_ref().map(|notes| notes.try_send(frame)) {
            Some(Ok(())) => true,
            Some(Err(TrySendError::Full(_))) => false,
            Some(Err(TrySendError::Disconnected(_))) | None => {
                self.notes = None;
                false
            }
        }
    }
}

impl Drop for Recorder {
    /// Waits until every note is in the file.
    fn drop(&mut self) {
        // No request is left, so the driver may wait.
        if let Some(notes) = self.notes.take() {
            let Late { windows, policy } = std::mem::take(&mut self.late);
            let gap = (windows > 0).then_some(Frame::Gap(windows));
            for frame in gap.into_iter().chain(policy) {
                // An error means that the thread has given up.
                let _ = notes.send(frame);
            }
        }
    }
}

// === impl Writing ===

impl Writing {
    fn run(mut self, notes: &Receiver<Frame>) {
        self.active.set(1.0);
        if let Err(error) = self.write_all(notes) {
            let pool = &self.pool;
            if error.is_full() {
                tracing::warn!(pool, %error, "recording stops");
            } else {
                tracing::error!(pool, %error, "recording fails and stops; serving goes on");
            }
        }
        self.active.set(0.0);
    }

    fn write_all(&mut self, notes: &Receiver<Frame>) -> Result<(), RecordingError> {
        loop {
            let due = FLUSH_EVERY.saturating_sub(self.flushed.elapsed());
            let note = match self.writer.is_dirty() {
                true => notes.recv_timeout(due),
                false => notes.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match note {
                Ok(frame) => self.write(&frame)?,
                Err(RecvTimeoutError::Timeout) => self.flush()?,
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
            if self.flushed.elapsed() >= FLUSH_EVERY {
                self.flush()?;
            }
        }
    }

    fn write(&mut self, frame: &Frame) -> Result<(), RecordingError> {
        if let Some(mut header) = self.header.take() {
            if let Frame::Policy(policy) = frame {
                header.policy.clone_from(policy);
                self.header = Some(header);
                return Ok(());
            }
            self.writer.write(&Frame::Start(Box::new(header)))?;
        }
        self.writer.write(frame)?;
        if matches!(frame, Frame::Decision(_)) {
            self.recorded.increment(1);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), RecordingError> {
        self.flushed = Instant::now();
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use switchyard_core::window::Window;
    use switchyard_policy::recording::Reader;
    use switchyard_policy::trial;

    use super::*;

    fn options(file: PathBuf, bytes_max: u64) -> RecordOptions {
        RecordOptions {
            file,
            bytes_max,
            header: Header {
                made_by: "test".to_owned(),
                simulated: false,
                pool: "main".to_owned(),
                seed: 0,
                window_budget_us: 1,
                policy_memory_bytes: 1,
                catalog: trial::catalog(),
                policy: None,
            },
        }
    }

    fn decision(id: u64) -> Arc<Decision> {
        let catalog = trial::catalog();
        let window = trial::window_of(&catalog, Default::default(), 64);
        Arc::new(Decision {
            window: Window { id, ..window },
            ..Decision::default()
        })
    }

    fn policy(label: &str) -> PolicyRecord {
        PolicyRecord {
            label: label.to_owned(),
            ..PolicyRecord::default()
        }
    }

    #[test]
    fn the_first_policy_is_in_the_header_and_the_rest_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("main.rec");
        let registry = Registry::new();
        let mut recorder = Recorder::start(options(file.clone(), u64::MAX), &registry).unwrap();
        recorder.policy(Some(policy("a@1")));
        recorder.decided(decision(1));
        recorder.policy(Some(policy("b@1")));
        recorder.decided(decision(2));
        recorder.policy(None);
        drop(recorder);
        let frames: Vec<Frame> = Reader::open(&file).unwrap().map(Result::unwrap).collect();
        let Frame::Start(header) = &frames[0] else {
            panic!("{:?}", frames[0]);
        };
        assert_eq!(header.policy, Some(policy("a@1")));
        let expected = [
            Frame::Decision(decision(1)),
            Frame::Policy(Some(policy("b@1"))),
            Frame::Decision(decision(2)),
            Frame::Policy(None),
        ];
        assert_eq!(frames[1..], expected);
    }

    /// Windows that the thread had no time for are missing, and the gaps count them.
    #[test]
    fn a_driver_that_is_faster_than_the_disk_waits_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("main.rec");
        let registry = Registry::new();
        let mut recorder = Recorder::start(options(file.clone(), u64::MAX), &registry).unwrap();
        let sent = 20 * NOTES_MAX as u64;
        let shared = decision(0);
        for _ in 0..sent {
            recorder.decided(Arc::clone(&shared));
        }
        drop(recorder);
        let (mut read, mut missing) = (0, 0);
        for frame in Reader::open(&file).unwrap() {
            match frame.unwrap() {
                Frame::Decision(_) => read += 1,
                Frame::Gap(windows) => missing += windows,
                _ => {}
            }
        }
        assert_eq!(read + missing, sent);
        let text = registry.render();
        let metric = |name: &str| format!("{name}{{pool=\"main\"}} ");
        let dropped = text
            .lines()
            .find_map(|line| line.strip_prefix(&metric(names::RECORDING_DROPPED.name)));
        assert_eq!(dropped.unwrap().parse::<u64>().unwrap(), missing);
    }

    #[test]
    fn a_full_file_stops_the_recording_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("main.rec");
        let registry = Registry::new();
        let mut recorder = Recorder::start(options(file.clone(), 10_000), &registry).unwrap();
        for id in 1..=20_000 {
            recorder.decided(decision(id));
            if recorder.notes.is_none() {
                break;
            }
        }
        assert!(recorder.notes.is_none(), "it goes on past its end");
        recorder.policy(None);
        drop(recorder);
        assert!(std::fs::metadata(&file).unwrap().len() <= 10_000);
        assert!(Reader::open(&file).unwrap().all(|frame| frame.is_ok()));
    }
}
