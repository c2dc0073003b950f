#!/usr/bin/env python3
"""EdgeServing's Figure 4, live: a server on a GPU, with the figure's workload over HTTP.

Poisson arrivals at 3 : 2 : 1 to ResNet-50, 101 and 152, a deadline of 50 ms, loads of 1 to 36 times 20
requests a second, under the figure's four policies. Every request is a picture of its own in v2's
binary form. Latency is from the moment a request was due, so that a client that falls behind counts
against the server and not for it. Prints a table and writes JSON. Needs Python alone.
"""
import argparse
import asyncio
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

APPS = {"resnet50": 3, "resnet101": 2, "resnet152": 1}
SLO_MS = 50.0
POLICIES = {
    "stability": "",
    "all-final": 'settings = { policy = "all-final" }',
    "all-early": 'settings = { policy = "all-early" }',
    "symphony": 'settings = { policy = "symphony" }',
}


def configuration(args, port, settings):
    profile = f'file = "{args.profile.resolve()}"' if args.profile.exists() else ""
    apps = "\n".join(
        f'[[app]]\nname = "{name}"\nzoo = "{args.zoo.resolve()}"\nvariants = ["{args.variant}"]\n'
        for name in APPS
    )
    pinned = ", ".join(f'"{name}/{args.variant}"' for name in APPS)
    return f"""[server]
http = "127.0.0.1:{port}"
admin = "127.0.0.1:{port + 1}"

{apps}
[[worker]]
name = "gpu"
device = "{args.device}"
memory_mb = 8192
pin = [{pinned}]

[[pool]]
name = "main"
apps = ["resnet50", "resnet101", "resnet152"]
workers = ["gpu"]
policy = "stability"
{settings}

[policies]
dir = "{args.policies.resolve()}"

[profile]
{profile}
"""


class Client:
    """Connections that are kept, one request at a time on each."""

    def __init__(self, port, picture):
        self.port = port
        self.idle = []
        inputs = [
            {
                "name": "image",
                "datatype": "FP32",
                "shape": [1, 3, args_size(picture), args_size(picture)],
                "parameters": {"binary_data_size": len(picture)},
            }
        ]
        text = json.dumps({"inputs": inputs, "outputs": [{"name": "label"}]}).encode()
        self.body = text + picture
        self.head = (
            "POST /v2/models/{app}/infer HTTP/1.1\r\nHost: x\r\n"
            "Content-Type: application/octet-stream\r\n"
            f"Inference-Header-Content-Length: {len(text)}\r\n"
            f"Content-Length: {len(self.body)}\r\n\r\n"
        )

    async def ask(self, app):
        """Status and response of one request."""
        if self.idle:
            reader, writer = self.idle.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(self.head.format(app=app).encode())
        writer.write(self.body)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        status = int(head[0].split()[1])
        length = next(int(h.split(":")[1]) for h in head if h.lower().startswith("content-length"))
        body = await reader.readexactly(length)
        self.idle.append((reader, writer))
        return status, body


def args_size(picture):
    """Side of a square image of this size in bytes."""
    return round((len(picture) / 12) ** 0.5)


async def drive(port, load, seconds, seed, picture):
    client, rng = Client(port, picture), random.Random(seed)
    loop = asyncio.get_running_loop()
    done, tasks = [], []

    async def one(app, due):
        try:
            status, body = await client.ask(app)
        except (OSError, asyncio.IncompleteReadError) as error:
            done.append((app, None, str(error), None))
            return
        late_ms = (loop.time() - due) * 1000.0
        exit_name = None
        if status == 200:
            text = body[: body.rfind(b"}") + 1]
            exit_name = json.loads(text).get("parameters", {}).get("exit")
        done.append((app, status, late_ms, exit_name))

    names, weights = list(APPS), list(APPS.values())
    due, end = loop.time() + 0.05, loop.time() + seconds
    while due < end:
        await asyncio.sleep(max(0.0, due - loop.time()))
        app = rng.choices(names, weights)[0]
        tasks.append(asyncio.create_task(one(app, due)))
        due += rng.expovariate(20.0 * load)
    await asyncio.wait(tasks, timeout=20)
    return done, len(tasks)


def summary(done, sent):
    times = sorted(ms for _, status, ms, _ in done if status == 200)
    at = lambda share: round(times[min(len(times) - 1, int(share * len(times)))], 2) if times else None
    late = sum(1 for ms in times if ms > SLO_MS)
    exits = {}
    for _, status, _, name in done:
        if status == 200:
            exits[str(name)] = exits.get(str(name), 0) + 1
    answered = len(times)
    return {
        "sent": sent,
        "answered": answered,
        "violation_ratio": round((late + sent - answered) / max(sent, 1), 4),
        "p50_ms": at(0.5),
        "p95_ms": at(0.95),
        "p99_ms": at(0.99),
        "exits": exits,
    }


def serving(port, process, limit):
    until = time.monotonic() + limit
    while time.monotonic() < until:
        if process.poll() is not None:
            return False
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=1) as r:
                if r.status == 200:
                    return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


def policy_serves(port, limit):
    """Whether the policy has taken over from the fallback, by the admin's word."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port + 1}/admin/v1/status", timeout=1) as r:
                if b'"stability@' in r.read():
                    return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--switchyard", type=pathlib.Path, required=True)
    parser.add_argument("--zoo", type=pathlib.Path, required=True)
    parser.add_argument("--policies", type=pathlib.Path, required=True)
    parser.add_argument("--profile", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--variant", default="base")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--port", type=int, default=18_000)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each load")
    parser.add_argument("--loads", type=float, nargs="*", default=[1, 4, 8, 12, 24, 36])
    parser.add_argument("--only", nargs="*", default=list(POLICIES), choices=list(POLICIES))
    args = parser.parse_args()
    count = 3 * args.size * args.size
    picture = struct.pack(f"<{count}f", *(((i * 37) % 101) / 101 - 0.5 for i in range(count)))
    result = {"device": args.device, "variant": args.variant, "slo_ms": SLO_MS, "rows": []}
    failed = False
    for policy in args.only:
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "switchyard.toml"
            config.write_text(configuration(args, args.port, POLICIES[policy]))
            log = open(pathlib.Path(args.out.parent) / f"fig04-{policy}.log", "w")
            command = [str(args.switchyard), "serve", "--config", str(config)]
            process = subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ))
            try:
                if not serving(args.port, process, 90) or not policy_serves(args.port, 20):
                    print(f"{policy}: the server does not come up, see {log.name}")
                    failed = True
                    continue
                # The first batch of each size loads kernels of cuBLAS.
                asyncio.run(drive(args.port, 24, 2.0, 0, picture))
                for load in args.loads:
                    done, sent = asyncio.run(drive(args.port, load, args.seconds, 7, picture))
                    row = {"policy": policy, "load": load, **summary(done, sent)}
                    result["rows"].append(row)
                    print(json.dumps(row), flush=True)
                    failed |= row["answered"] == 0
                    args.out.write_text(json.dumps(result, indent=1))
            finally:
                process.terminate()
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
                log.close()
    args.out.write_text(json.dumps(result, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
