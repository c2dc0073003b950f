//! The Prometheus text format, as far as tests read it.

/// A reply of `/metrics`.
#[derive(Debug)]
pub(crate) struct Metrics {
    samples: Vec<(String, String, f64)>,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn parse(text: &str) -> Self {
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let samples = lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            (name.to_owned(), labels.to_owned(), value.parse().unwrap())
        });
        Self {
            samples: samples.collect(),
        }
    }

    /// The sum over all series of this name that have these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> i64 {
        let of = self.values(name, labels);
        of.map(|value| value as i64).sum()
    }

    /// The same for a metric that has fractions.
    pub(crate) fn total(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.values(name, labels).sum()
    }

    fn values<'a>(
        &'a self,
        name: &'a str,
        labels: &[(&str, &str)],
    ) -> impl Iterator<Item = f64> + use<'a> {
        let wanted: Vec<_> = labels
            .iter()
            .map(|(key, value)| format!("{key}=\"{value}\""))
            .collect();
        let has = move |labels: &str| wanted.iter().all(|label| labels.contains(label));
        let found = self
            .samples
            .iter()
            .filter(move |(n, labels, _)| n == name && has(labels));
        found.map(|(_, _, value)| *value)
    }
}
