//! Sixty variants on the front that nine span.

use ramsis_prepare::Model;

/// Step of accuracy (section 7.3.2).
const INCREMENT: f64 = 0.005;

/// The nine, with variants interpolated between neighbours in steps of half a percent of accuracy
/// (Figure 8): sixty.
pub(crate) fn sixty(nine: &[Model]) -> Vec<Model> {
    let mut models = Vec::new();
    for pair in nine.windows(2) {
        let (below, above) = (&pair[0], &pair[1]);
        models.push(below.clone());
        let apart = above.accuracy - below.accuracy;
        let steps = (apart / INCREMENT - 1e-9).floor() as usize;
        models.extend((1..=steps).map(|step| {
            let accuracy = below.accuracy + INCREMENT * step as f64;
            let share = (accuracy - below.accuracy) / apart;
            let between = |(&from, &to): (&u64, &u64)| {
                (from as f64 + share * (to as f64 - from as f64)).round() as u64
            };
            let batches = below.latency_us.iter().zip(&above.latency_us);
            Model {
                name: format!("{}+{step}", below.name),
                accuracy,
                latency_us: batches.map(between).collect(),
            }
        }));
    }
    models.extend(nine.last().cloned());
    models
}
