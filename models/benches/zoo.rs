//! Every network of the zoo on the CPU's kernels in f32, compared with the same network in
//! onnxruntime, in one run and in turns: `cargo bench -p switchyard-models --bench zoo`.
//!
//! `-- --quick` takes fewer turns. `-- --instructions avx2` limits the instructions of the kernels;
//! onnxruntime always uses those of the machine. `-- --only NAME` takes the variants with NAME in
//! their path.
//!
//! onnxruntime comes from PyPI into `target/engines/venv`, once. Its graphs are in
//! `benches/networks`. The kernels' time contains the softmax that a server answers with, the
//! graphs end with the logits. Times are medians of single forwards in milliseconds, by the clock
//! and of CPU; on a shared machine the latter is more reliable. A ratio is the median over the turns
//! of the ratio of both medians of a turn, so it may differ from the ratio of the two times printed.

#[path = "zoo/inputs.rs"]
mod inputs;
#[path = "common/onnx.rs"]
mod onnx;
#[path = "common/times.rs"]
mod times;
#[path = "zoo/variant.rs"]
mod variant;

use std::path::Path;

use rayon::{ThreadPool, ThreadPoolBuilder};

use self::onnx::Onnx;
use self::times::{Result, Times, forwards, limit_instructions, medians};
use self::variant::BenchVariant;

/// Batch and threads.
const CASES: [[usize; 2]; 4] = [[1, 1], [1, 2], [8, 1], [8, 2]];

/// Milliseconds of one engine in one turn, if that is enough forwards. Short, so that
/// both engines of a turn have the same share of a shared machine.
const TURN_MS: f64 = 6.0;

/// Fewest and most forwards of one turn. The first one reads a cache that the other engine filled.
const RUNS: [usize; 2] = [3, 50];

/// A variant with a batch and a number of threads.
struct Cell {
    name: String,
    /// Of the kernels' times to onnxruntime's.
    ratios: Times,
}

fn main() -> Result<()> {
    limit_instructions()?;
    let arguments: Vec<String> = std::env::args().collect();
    let turns = match arguments.iter().any(|argument| argument == "--quick") {
        true => 9,
        false => 45,
    };
    let mut only = arguments
        .iter()
        .skip_while(|argument| *argument != "--only");
    let only = only.nth(1).map_or("", String::as_str);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("../target/engines/zoo");
    std::fs::create_dir_all(&folder)?;
    let variants = BenchVariant::all(&root.join("zoo"), only)?;
    let mut onnx = Onnx::start("zoo.py", &folder)?;
    println!("{}", onnx.ask("versions")?);
    for variant in &variants {
        variant.write_rows(&folder)?;
        variant.compare(&mut onnx)?;
    }
    println!(
        "{:17} {:>5} {:>7}  {:>8} {:>8} {:>6}  {:>8} {:>8} {:>6}",
        "", "", "", "wall ms", "", "", "CPU ms", "", ""
    );
    println!(
        "{:17} {:>5} {:>7}  {:>8} {:>8} {:>6}  {:>8} {:>8} {:>6}",
        "network", "batch", "threads", "kernels", "onnxrt", "ratio", "kernels", "onnxrt", "ratio"
    );
    let mut cells = Vec::new();
    for variant in &variants {
        for case in CASES {
            cells.push(Cell::measure(variant, case, turns, &mut onnx)?);
        }
    }
    for (clock, name) in ["wall", "CPU"].into_iter().enumerate() {
        summarize(&cells, clock, name);
    }
    Ok(())
}

/// Prints how many cells are at or below onnxruntime's time, and the worst.
fn summarize(cells: &[Cell], clock: usize, name: &str) {
    let ratio = |cell: &&Cell| cell.ratios[clock];
    let low = cells.iter().filter(|cell| ratio(cell) <= 1.0).count();
    let worst = cells.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    if let Some(worst) = worst {
        println!(
            "{name}: {low} of {} cells at or below onnxruntime; worst {:.2}, {}",
            cells.len(),
            ratio(&worst),
            worst.name
        );
    }
}

// === impl Cell ===

impl Cell {
    /// Measures both engines in turns and prints a line.
    fn measure(
        variant: &BenchVariant,
        [batch, threads]: [usize; 2],
        turns: usize,
        onnx: &mut Onnx,
    ) -> Result<Self> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
        let runs = runs(variant, batch, &pool)?;
        let x = variant.rows(batch)?;
        let name = &variant.name;
        let request = format!("time {name} {batch} {threads} {runs}");
        let mut times = [const { Vec::new() }; 2];
        let mut ratios = Vec::new();
        for turn in 0..=turns {
            let kernels = forwards(&pool, &*variant.model, variant.exit, &x, runs)?;
            let onnxruntime = onnx.times(&request)?;
            // The first turn warms up.
            if turn > 0 {
                let [ours, theirs] = [medians(&kernels), medians(&onnxruntime)];
                ratios.push([0, 1].map(|clock| ours[clock] / theirs[clock]));
                times[0].extend(kernels);
                times[1].extend(onnxruntime);
            }
        }
        let [kernels, onnxruntime] = times.map(|times| medians(&times));
        let ratios = medians(&ratios);
        let [wall, cpu] = ratios;
        println!(
            "{name:17} {batch:5} {threads:7}  {:8.3} {:8.3} {wall:6.2}  {:8.3} {:8.3} {cpu:6.2}",
            kernels[0], onnxruntime[0], kernels[1], onnxruntime[1],
        );
        Ok(Self {
            name: format!("{name}, batch {batch}, threads {threads}"),
            ratios,
        })
    }
}

/// Forwards that fill a turn.
fn runs(variant: &BenchVariant, batch: usize, pool: &ThreadPool) -> Result<usize> {
    let x = variant.rows(batch)?;
    let times = forwards(pool, &*variant.model, variant.exit, &x, 5)?;
    let [wall, _] = medians(&times);
    let [least, most] = RUNS;
    Ok(((TURN_MS / wall) as usize).clamp(least, most))
}
