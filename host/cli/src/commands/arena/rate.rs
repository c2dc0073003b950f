//! The mean rate of a workload, from its parameters.

use switchyard_core::time::Micros;
use switchyard_sim::Workload;
use switchyard_sim::workload::{Apps, Arrivals, RequestStream, Trace};

/// Arrivals per second of all streams together, on a pool of `apps`. Traces must be inline.
///
/// # Errors
/// The mean of an arrival process is not computed here.
pub(super) fn mean_per_s(workload: &Workload, apps: usize) -> Result<f64, String> {
    let rates = workload.streams.iter().map(|stream| {
        let times = match stream.apps {
            Apps::Each => apps as f64,
            Apps::All | Apps::Mix(_) => 1.0,
        };
        Ok(times * of_stream(stream)?)
    });
    rates.sum()
}

fn of_stream(stream: &RequestStream) -> Result<f64, String> {
    let seconds = |length: Micros| length.0 as f64 / 1e6;
    Ok(match &stream.arrivals {
        Arrivals::Poisson { rate }
        | Arrivals::Gamma { rate, .. }
        | Arrivals::Erlang { rate, .. }
        | Arrivals::Periodic { rate } => *rate,
        Arrivals::Mmpp { rates, leave } => {
            // A phase lasts 1 / leave on average.
            let stays = leave.iter().map(|leave| 1.0 / leave);
            let arrivals = rates.iter().zip(leave).map(|(rate, leave)| rate / leave);
            arrivals.sum::<f64>() / stays.sum::<f64>()
        }
        Arrivals::Phases(phases) => {
            let arrivals = phases.iter().map(|p| p.rate * seconds(p.length_us));
            let length: f64 = phases.iter().map(|p| seconds(p.length_us)).sum();
            arrivals.sum::<f64>() / length
        }
        Arrivals::Window { count, length_us } => f64::from(*count) / seconds(*length_us),
        Arrivals::Burst {
            rate,
            size,
            every_us,
        } => rate + f64::from(*size) / seconds(*every_us),
        Arrivals::Trace(trace) => of_trace(stream, trace)?,
        Arrivals::Map { .. } | Arrivals::File(_) => {
            let label = stream.arrivals.label();
            return Err(format!("{label}: has no mean rate to scale; write mmpp"));
        }
    })
}

fn of_trace(stream: &RequestStream, trace: &Trace) -> Result<f64, String> {
    if let Some(qps) = &trace.qps {
        return Ok(qps.iter().sum::<f64>() / qps.len().max(1) as f64);
    }
    let requests = trace.arrivals_us.iter().map(Vec::len);
    let requests = requests.chain(trace.requests.iter().map(Vec::len));
    let alone = Workload {
        streams: vec![stream.clone()],
    };
    let length = alone.trace_length().map_err(|error| error.to_string())?;
    match length.unwrap_or_default().0 {
        0 => Err("trace: all requests arrive at once, there is no rate to scale".to_owned()),
        us => Ok(requests.sum::<usize>() as f64 * 1e6 / us as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_by_hand() {
        let mean = |spec: &str| {
            let workload: Workload = spec.parse().expect("a workload");
            mean_per_s(&workload, 3).expect("a rate")
        };
        assert_eq!(mean("poisson:5;*=periodic:2"), 11.0);
        // 10 s at 1 a second, then 90 s at 11.
        assert_eq!(mean("phases:1x10s,11x90s"), 10.0);
        assert_eq!(mean("mmpp:1,11,0.1,0.1"), 6.0);
        assert_eq!(mean("window:12x100ms"), 120.0);
        assert_eq!(mean("burst:1,20x10s"), 3.0);
    }
}
