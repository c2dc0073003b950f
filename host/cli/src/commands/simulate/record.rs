//! `--record`: the windows and plans of a run, for `replay`.

use std::path::Path;
use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::decision::Decision;
use switchyard_policy::recording::{Frame, Header, RecordingError, Writer};
use switchyard_sim::{Contender, Observer, Scenario, run_observed};

use switchyard_simulate::Prepared;
use switchyard_simulate::contenders::SEED;

use crate::commands::draft::Draft;
use crate::commands::failure::Failure;

/// Writes every decision.
struct Recording {
    writer: Writer,
    /// The first failed write; later decisions are dropped.
    failed: Option<RecordingError>,
}

/// Runs the first policy once more and records it. A run is the same every time.
pub(super) fn record(file: &Path, scenario: &Scenario, prepared: &Prepared) -> Result<(), Failure> {
    let (contenders, test_bed) = (&prepared.contenders, &prepared.test_bed);
    let seed = prepared.request.seeds.first().copied();
    let (Some(contender), Some(seed)) = (contenders.list.first(), seed) else {
        return Ok(());
    };
    let header = Header {
        simulated: true,
        policy: contenders.records.first().cloned(),
        ..Header::new(&test_bed.pool, scenario.catalog.as_ref().clone())
            .with_seed(SEED)
            .with_limits(&test_bed.limits)
    };
    let unwritten = |error: std::io::Error| Failure::input(format!("{}: {error}", file.display()));
    let draft = Draft::begin(file).map_err(unwritten)?;
    let mut recording = Recording {
        writer: Writer::create(draft.path()).map_err(Failure::input)?,
        failed: None,
    };
    let written = recording.writer.write(&Frame::Start(Box::new(header)));
    written.map_err(Failure::input)?;
    run(scenario, contender, seed, &mut recording)?;
    let Recording { mut writer, failed } = recording;
    let ended = failed.map_or_else(|| writer.flush(), Err);
    ended.map_err(Failure::input)?;
    drop(writer);
    draft.finish().map_err(unwritten)
}

fn run(
    scenario: &Scenario,
    contender: &Contender,
    seed: u64,
    recording: &mut Recording,
) -> Result<(), Failure> {
    let telling = Scenario {
        scheduler: SchedulerConfig {
            tells_decisions: true,
            ..scenario.scheduler.clone()
        },
        ..scenario.clone()
    };
    run_observed(&telling, contender, seed, recording).map_err(Failure::input)?;
    Ok(())
}

// === impl Recording ===

impl Observer for Recording {
    fn decided(&mut self, decision: &Arc<Decision>) {
        if self.failed.is_none() {
            let frame = Frame::Decision(Arc::clone(decision));
            self.failed = self.writer.write(&frame).err();
        }
    }
}
