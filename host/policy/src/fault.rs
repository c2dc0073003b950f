//! Turns wasmtime's errors into the faults that the core counts.

use std::time::Duration;

use switchyard_core::policy::{FaultKind, PolicyFault};
use wasmtime::Trap;

use crate::limits::Limits;
use crate::truncate::one_line;

/// The end of wasmtime's message for a call that passes too many bytes. The error has no public type.
const CROSSED: &str = "fuel allocated for hostcalls has been exhausted";

/// The fault of a call that ended without an answer.
pub(crate) fn of_error(
    call: &str,
    error: &wasmtime::Error,
    refused_bytes: Option<usize>,
    budget: Duration,
    limits: &Limits,
) -> PolicyFault {
    let trap = error.downcast_ref::<Trap>();
    match (trap, refused_bytes) {
        (Some(Trap::Interrupt | Trap::OutOfFuel), _) => PolicyFault::new(
            FaultKind::Overrun,
            format!("{call} was cut at its budget of {budget:?}"),
        ),
        (Some(Trap::StackOverflow), _) => {
            PolicyFault::new(FaultKind::Stack, format!("{call} overflowed its stack"))
        }
        (_, Some(bytes)) => PolicyFault::new(
            FaultKind::Memory,
            format!(
                "{call} asked for {bytes} bytes of memory, the limit is {}",
                limits.memory_bytes
            ),
        ),
        (Some(trap), None) => {
            let reason = trap.to_string();
            let reason = reason.strip_prefix("wasm trap: ").unwrap_or(&reason);
            PolicyFault::new(FaultKind::Trap, format!("{call} trapped: {reason}"))
        }
        (None, None) => of_crossing(call, error, limits),
    }
}

/// No trap of its own code: the host cannot read its result or an argument.
fn of_crossing(call: &str, error: &wasmtime::Error, limits: &Limits) -> PolicyFault {
    let mut reason = error.root_cause().to_string();
    if reason.ends_with(CROSSED) {
        let reason = format!("{call} passed more bytes to the host than one call may");
        return PolicyFault::new(FaultKind::Refused, reason);
    }
    one_line(&mut reason, limits.log_line_bytes);
    PolicyFault::new(
        FaultKind::Trap,
        format!("{call} broke the contract: {reason}"),
    )
}

/// The fault of a call that the policy answered with an error of its own.
pub(crate) fn of_refusal(call: &str, mut reason: String, limits: &Limits) -> PolicyFault {
    one_line(&mut reason, limits.log_line_bytes);
    PolicyFault::new(FaultKind::Failed, format!("{call}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(error: wasmtime::Error, refused: Option<usize>) -> FaultKind {
        let limits = Limits::default();
        of_error("schedule", &error, refused, limits.window_budget, &limits).kind
    }

    #[test]
    fn each_error_has_its_kind_of_fault() {
        assert_eq!(kind(Trap::Interrupt.into(), None), FaultKind::Overrun);
        assert_eq!(kind(Trap::OutOfFuel.into(), None), FaultKind::Overrun);
        assert_eq!(kind(Trap::StackOverflow.into(), None), FaultKind::Stack);
        assert_eq!(
            kind(Trap::UnreachableCodeReached.into(), None),
            FaultKind::Trap
        );
        assert_eq!(
            kind(wasmtime::format_err!("bad list"), None),
            FaultKind::Trap
        );
    }

    #[test]
    fn a_reason_of_a_policy_is_one_line() {
        let limits = Limits::default();
        let reason = "no\n2026-01-01 ERROR forged".to_owned();
        let fault = of_refusal("configure", reason, &limits);
        assert_eq!(fault.reason, r"configure: no\n2026-01-01 ERROR forged");
    }

    #[test]
    fn a_refused_growth_explains_the_trap_that_follows_but_not_a_cut() {
        let refused = Some(17 << 20);
        let trap = Trap::UnreachableCodeReached;
        assert_eq!(kind(trap.into(), refused), FaultKind::Memory);
        assert_eq!(kind(Trap::Interrupt.into(), refused), FaultKind::Overrun);
    }
}
