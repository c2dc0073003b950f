"""Runs a real Prometheus on a real server: every expression of the alerts and of the dashboard is evaluated, and
faults are injected until their alerts fire.

Arguments: the program, a folder for files, the folder of models, the folders of policies and of guests, and the
folder with alerts.yml and grafana.json. Needs `prometheus` and `promtool` on the path.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

program, folder, zoo, policies, guests, rules = [os.path.abspath(path) for path in sys.argv[1:7]]

# Alerts that a fault brings about here. The others have cases in alerts_test.yml: no fault from outside makes the
# core lose a request.
FIRED = {
    "SwitchyardPolicyFaults": "a component that traps",
    "SwitchyardFallbackActive": "a component that traps",
    "SwitchyardNoPolicy": "a removed component",
    "SwitchyardRequestsRefused": "wrong requests",
    "SwitchyardDeadlinesMissed": "more requests than the server carries",
    "SwitchyardDown": "a killed server",
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


http, admin, prometheus = free_port(), free_port(), free_port()
os.makedirs(f"{folder}/policies", exist_ok=True)
shutil.copy(f"{policies}/fcfs.wasm", f"{folder}/policies/live.wasm")
with open(f"{folder}/switchyard.toml", "w") as file:
    file.write(f"""
[server]
http = "127.0.0.1:{http}"
admin = "127.0.0.1:{admin}"
[[app]]
name = "heart"
zoo = "{zoo}"
[[worker]]
name = "cpu"
threads = 1
memory_mb = 256
[[pool]]
name = "main"
apps = ["heart"]
workers = ["cpu"]
policy = "live"
[policies]
dir = "{folder}/policies"
cache = "{folder}/compiled"
[profile]
dir = "{folder}/profiles"
measure_s = 2
""")
with open(f"{folder}/prometheus.yml", "w") as file:
    file.write(f"""
global: {{ scrape_interval: 1s, evaluation_interval: 1s }}
rule_files: ["{rules}/alerts.yml"]
scrape_configs:
  - job_name: switchyard
    static_configs: [{{ targets: ["127.0.0.1:{admin}"] }}]
""")


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return answer.read().decode()


def post(body):
    request = urllib.request.Request(f"http://127.0.0.1:{http}/v2/models/heart/infer", body.encode())
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def wait(what, condition, seconds=150):
    end = time.time() + seconds
    while time.time() < end:
        try:
            found = condition()
        except (OSError, ValueError):
            found = None
        if found:
            return found
        time.sleep(0.5)
    sys.exit(f"waited {seconds} s for {what}")


def query(expression):
    path = "/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    return json.loads(get(prometheus, path))["data"]["result"]


def firing():
    alerts = json.loads(get(prometheus, "/api/v1/alerts"))["data"]["alerts"]
    return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}


def expressions():
    with open(f"{rules}/grafana.json") as file:
        dashboard = json.load(file)
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "30s").replace("$instance", ".*")
            yield panel["title"], expression
    groups = json.loads(get(prometheus, "/api/v1/rules"))["data"]["groups"]
    for rule in (rule for group in groups for rule in group["rules"]):
        yield rule["name"], rule["query"]


good = json.dumps(
    {"inputs": [{"name": "beat", "shape": [1, 187], "datatype": "FP32", "data": [0.1] * 187}]}
)
stopping = threading.Event()


def clients(body, count):
    def one():
        while not stopping.is_set():
            try:
                post(body)
            except OSError:
                time.sleep(0.2)

    threads = [threading.Thread(target=one, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()


started = []


def start(*command):
    with open(f"{folder}/{os.path.basename(command[0])}.log", "w") as log:
        started.append(subprocess.Popen(command, stdout=log, stderr=log))
    return started[-1]


try:
    server = start(program, "serve", "--config", f"{folder}/switchyard.toml")
    wait("the server", lambda: post(good) == 200)
    start(
        "prometheus",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{prometheus}",
    )
    clients(good, 2)
    exposition = get(admin, "/metrics")
    lint = subprocess.run(["promtool", "check", "metrics"], input=exposition, text=True, capture_output=True)
    if lint.returncode or lint.stderr.strip():
        sys.exit(f"promtool check metrics: {lint.stdout}{lint.stderr}")
    print("promtool check metrics: clean")
    wait("samples", lambda: query("sum(rate(switchyard_requests_total[30s])) > 0"), 60)
    time.sleep(5)
    healthy = firing()
    if healthy:
        sys.exit(f"a healthy server fires {sorted(healthy)}")
    empty = [title for title, expression in expressions() if not query(expression) and title not in FIRED]
    checked = sum(1 for _ in expressions())
    print(f"{checked} expressions evaluated; without a series on a healthy server: {', '.join(empty)}")

    began = {}

    def fires(*names):
        at = time.time()
        for name in names:
            wait(name, lambda: name in firing())
            began[name] = time.time() - at
            print(f"{name} fires {began[name]:.0f} s after: {FIRED[name]}", flush=True)

    server.kill()
    fires("SwitchyardDown")
    shutil.copy(f"{guests}/traps.wasm", f"{folder}/policies/live.wasm")
    server = start(program, "serve", "--config", f"{folder}/switchyard.toml")
    fires("SwitchyardPolicyFaults", "SwitchyardFallbackActive")
    os.remove(f"{folder}/policies/live.wasm")
    fires("SwitchyardNoPolicy")
    clients("{}", 2)
    fires("SwitchyardRequestsRefused")
    # Deadlines that no model can meet.
    clients(good.replace("{", '{"parameters": {"timeout": 1}, ', 1), 4)
    fires("SwitchyardDeadlinesMissed")
finally:
    stopping.set()
    for process in started:
        process.kill()
