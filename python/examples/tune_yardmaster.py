"""Tunes the settings of yardmaster on the training traces, and compares them with the defaults on held-out ones.

    pip install switchyard[tune]
    python python/examples/tune_yardmaster.py --trials 60
"""

import argparse
import time

import optuna

import switchyard
from switchyard.evaluate import Evaluator


def settings(trial: optuna.Trial) -> dict[str, float]:
    return {
        "margin": trial.suggest_float("margin", 0.0, 1.0),
        "punctuality": trial.suggest_float("punctuality", 0.01, 10.0, log=True),
        "wait_cost": trial.suggest_float("wait_cost", 0.0, 0.2),
        "horizon": trial.suggest_float("horizon", 0.05, 5.0, log=True),
        "fill": trial.suggest_float("fill", 0.5, 1.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60, help="settings that are tried")
    parser.add_argument("--seed", type=int, default=1, help="seed of the optimiser")
    args = parser.parse_args()
    evaluator = Evaluator()
    default = switchyard.Policy("yardmaster")

    def objective(trial: optuna.Trial) -> float:
        return evaluator.score(switchyard.Policy("yardmaster", settings=settings(trial))).value

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=args.seed))
    # The defaults, so that the best is no worse on the training traces.
    study.enqueue_trial({"margin": 0.0, "punctuality": 3.0, "wait_cost": 0.01, "horizon": 1.0, "fill": 1.0})
    began = time.perf_counter()
    study.optimize(objective, n_trials=args.trials)
    seconds = time.perf_counter() - began

    best = switchyard.Policy("yardmaster", settings=study.best_params)
    print(f"{args.trials} trials in {seconds:.0f} s, {seconds / args.trials:.2f} s each")
    print("settings:", {name: round(value, 4) for name, value in study.best_params.items()})
    print(f"training: {study.trials[0].value:.4f} with the defaults, {study.best_value:.4f} tuned")
    # The held-out traces are run here for the first time.
    before, after = evaluator.held_out_score(default), evaluator.held_out_score(best)
    difference, half_width = after.minus(before)
    print(f"held out: {before.value:.4f} with the defaults, {after.value:.4f} tuned")
    print(f"difference {difference:+.4f} ± {half_width:.4f} (95 %, {len(after.by_seed)} seeds)")
    for name, value in after.by_case.items():
        print(f"  {name}: {before.by_case[name]:.4f}, {value:.4f}")
    print("better" if difference > half_width else "worse" if difference < -half_width else "not significant")


main()
