//! Laws of service times on the command line.

use std::str::FromStr;

use switchyard_sim::ServiceTimes;

/// A law of service times, as typed.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// A law with its own parameters.
    Law(ServiceTimes),
    /// Interpolated between the profile's percentiles.
    Percentiles,
}

// === impl Service ===

impl Service {
    /// The latencies of the profile.
    pub fn profiled() -> Self {
        Self::Law(ServiceTimes::Profiled)
    }
}

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (law, numbers) = text.split_once(':').unwrap_or((text, ""));
        let numbers: Vec<f64> = numbers
            .split(',')
            .filter(|word| !word.is_empty())
            .map(|word| {
                word.parse()
                    .map_err(|_| format!("`{word}` is not a number"))
            })
            .collect::<Result<_, _>>()?;
        match (law, numbers.as_slice()) {
            ("profiled", []) => Ok(Self::Law(ServiceTimes::Profiled)),
            ("percentiles", []) => Ok(Self::Percentiles),
            ("normal", &[mean, cv]) => Ok(Self::Law(ServiceTimes::Normal { mean, cv })),
            ("log-normal", &[mean, cv]) => Ok(Self::Law(ServiceTimes::LogNormal { mean, cv })),
            ("exponential", &[mean]) => Ok(Self::Law(ServiceTimes::Exponential { mean })),
            _ => Err(
                "must be profiled, percentiles, normal:MEAN,CV, log-normal:MEAN,CV or \
                 exponential:MEAN"
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_as_they_are_typed() {
        let law = |text: &str| text.parse::<Service>();
        assert_eq!(law("percentiles"), Ok(Service::Percentiles));
        let normal = ServiceTimes::Normal { mean: 0.8, cv: 0.1 };
        assert_eq!(law("normal:0.8,0.1"), Ok(Service::Law(normal)));
        for wrong in [
            "",
            "normal",
            "normal:1",
            "exponential:x",
            "profiled:1",
            "pareto:1,2",
        ] {
            assert!(law(wrong).is_err(), "{wrong}");
        }
    }
}
