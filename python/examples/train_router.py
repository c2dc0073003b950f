"""Trains a router with stable-baselines3, and serves its weights by the policy `ppo-router`.

    pip install switchyard[gym] stable-baselines3
    python python/examples/train_router.py --steps 200000
"""

import argparse
import shutil
from pathlib import Path

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import switchyard
from switchyard.gym import RouterEnv
from switchyard.stepped import Stepped

PROFILE = switchyard.reference_profile()
WORKLOAD = "heart=mmpp:6600,360,0.5,0.028"
OPTIONS = {"workers": 3, "seconds": 10}


def environment() -> RouterEnv:
    workers = Stepped(PROFILE, WORKLOAD, **OPTIONS).catalog.workers
    variants = ["resnet", "cnn", "cnn-small"]
    instances = {worker["name"]: variant for worker, variant in zip(workers, variants)}
    return RouterEnv(PROFILE, WORKLOAD, app="heart", instances=instances, **OPTIONS)


def layers(model: PPO) -> list:
    """The layers of the policy's network, whose mean action `ppo-router` takes."""
    linear = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
    linear = [layer for layer in linear if isinstance(layer, torch.nn.Linear)]
    return [(layer.weight.detach().numpy().copy(), layer.bias.detach().numpy().copy()) for layer in linear]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200_000, help="slots of the training")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("trained"), help="folder of the policy and its weights")
    args = parser.parse_args()

    torch.set_num_threads(1)
    network = {"net_arch": [90, 60], "activation_fn": torch.nn.Tanh}
    environments = make_vec_env(environment, n_envs=8, seed=args.seed)
    model = PPO("MlpPolicy", environments, seed=args.seed, policy_kwargs=network, n_steps=256, batch_size=512, device="cpu")
    untrained = layers(model)
    model.learn(args.steps)

    # A folder of policies: the component, and its weights next to it.
    env = environment()
    bundled = PROFILE.parents[1]
    found = [folder / "ppo-router.wasm" for folder in [bundled / "policies", bundled / "target/policies"]]
    weights = args.out / "ppo-router/own"
    weights.mkdir(parents=True, exist_ok=True)
    shutil.copy(next(file for file in found if file.is_file()), args.out)
    policies = []
    for name, network in [("untrained", untrained), ("trained", layers(model))]:
        (weights / f"{name}.safetensors").write_bytes(env.weights(network, args.seed, f"train_router.py --steps {args.steps}"))
        policies.append(switchyard.Policy("ppo-router", name=name, settings=env.settings(f"own/{name}.safetensors")))
    result = switchyard.simulate(PROFILE, WORKLOAD, policies, policies_dir=args.out, seeds=range(101, 111), **OPTIONS)
    for name, metrics in result.summary().items():
        print(f"{name}: {100 * metrics['violation_ratio']['mean']:.2f} % not in time, utility {metrics['utility']['mean']:.4f}")
    [trained] = result.compare("untrained")
    [utility] = [effect for effect in trained["effects"] if effect["metric"] == "utility"]
    difference = utility["difference"]
    print(f"utility {difference['mean']:+.4f} ± {difference['half_width']:.4f} (95 %, {difference['runs']} seeds): {utility['verdict']}")


main()
