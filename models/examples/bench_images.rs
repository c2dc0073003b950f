//! tmp
use std::sync::Mutex;
use std::time::Instant;
use switchyard_models::train::{Progress, TrainOptions, train};
struct P(Mutex<(Vec<f64>, Instant)>);
impl Progress for P {
    fn begin(&self, phase: &str, steps: u64) {
        println!("{phase} {steps}");
    }
    fn step(&self, note: &str) {
        let mut s = self.0.lock().unwrap();
        s.0.push(note.trim_start_matches("loss ").parse().unwrap());
        if s.0.len() % 50 == 0 {
            let n = s.0.len();
            let m = s.0[n - 50..].iter().sum::<f64>() / 50.0;
            println!("{n} {m:.3} {:?}", s.1.elapsed());
        }
    }
    fn end(&self) {}
}
fn main() {
    let v = std::env::args().nth(1).unwrap();
    let out = std::env::args().nth(2).unwrap();
    let t = Instant::now();
    let r = train(
        "images",
        &TrainOptions {
            out: out.into(),
            seed: 1,
            quick: false,
            variants: Some(vec![v.clone()]),
        },
        &P(Mutex::new((vec![], Instant::now()))),
    )
    .unwrap();
    println!("{v} {:?} {:?}", t.elapsed(), r);
}
