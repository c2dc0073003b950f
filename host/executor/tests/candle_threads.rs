//! Candle's variables. They are set while the process has one thread, so this test has no harness:
//! it starts itself once per case, without the variables or with those of the case.
#![allow(missing_docs, clippy::unwrap_used)]

use std::process::Command;

use switchyard_executor::candle_threads::{candle_misfit, configure_candle};

const CASE: &str = "SWITCHYARD_TEST_CASE";

fn main() {
    match std::env::var(CASE).as_deref() {
        Ok("alone") => sets_both_variables(),
        Ok("operator") => keeps_a_variable_that_is_set(),
        Ok("threads") => leaves_the_environment_alone_when_a_thread_runs(),
        _ => {
            run("alone", &[]);
            run("operator", &[("RAYON_NUM_THREADS", "2")]);
            run("threads", &[]);
        }
    }
}

fn run(case: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env_remove("RAYON_NUM_THREADS");
    command.env_remove("CANDLE_NUM_THREADS");
    command.envs(variables.iter().copied()).env(CASE, case);
    let status = command.status().unwrap();
    assert!(status.success(), "case {case}: {status}");
    println!("case {case} ... ok");
}

fn sets_both_variables() {
    let misfit = candle_misfit(1);
    assert_eq!(
        misfit.as_deref(),
        Some(
            "RAYON_NUM_THREADS is unset and CANDLE_NUM_THREADS is unset; workers of up to 1 \
             threads run best with 1 and 1"
        )
    );
    configure_candle(2);
    // Other systems than Linux do not tell how many threads the process has.
    if cfg!(target_os = "linux") {
        assert_eq!(candle_misfit(2), None);
    }
}

fn keeps_a_variable_that_is_set() {
    configure_candle(4);
    if cfg!(target_os = "linux") {
        let misfit = candle_misfit(4);
        assert_eq!(
            misfit.as_deref(),
            Some(
                "RAYON_NUM_THREADS is 2 and CANDLE_NUM_THREADS is 1; workers of up to 4 threads \
                 run best with 4 and 1"
            )
        );
    }
}

fn leaves_the_environment_alone_when_a_thread_runs() {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || ended.recv());
    configure_candle(2);
    assert!(candle_misfit(2).is_some());
    drop(end);
    assert!(thread.join().unwrap().is_err());
}
