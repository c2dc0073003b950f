//! Alone in its process, since it changes the environment.

use switchyard_executor::threads::{candle_misfit, configure_candle};

#[test]
fn candle_is_fitted_to_the_workers_once() {
    // SAFETY: this is the only test of the process; the thread that waits for it touches no
    // environment.
    unsafe {
        std::env::remove_var("RAYON_NUM_THREADS");
        std::env::remove_var("CANDLE_NUM_THREADS");
    }
    assert_eq!(
        candle_misfit(1).as_deref(),
        Some(
            "RAYON_NUM_THREADS is unset and CANDLE_NUM_THREADS is unset; workers of up to 1 \
             threads run best with 1 and 1"
        )
    );
    // SAFETY: as above.
    unsafe { configure_candle(2) };
    assert_eq!(candle_misfit(2), None);
    // What is set stays, and is said when it does not fit.
    // SAFETY: as above.
    unsafe { configure_candle(4) };
    assert_eq!(
        candle_misfit(4).as_deref(),
        Some(
            "RAYON_NUM_THREADS is 2 and CANDLE_NUM_THREADS is 1; workers of up to 4 threads run \
             best with 4 and 1"
        )
    );
}
