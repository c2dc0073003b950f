"""A server with two apps, its steady clients, and floods of one app by `wrk`."""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

TOKEN = "5f0c2b9a7e1d4c38"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def body(name, shape):
    count = 1
    for size in shape:
        count *= size
    tensor = {"name": name, "shape": [1, *shape], "datatype": "FP32", "data": [0.1] * count}
    return json.dumps({"inputs": [tensor]})


BODIES = {"heart": body("beat", [187]), "images": body("image", [3, 32, 32])}


class Server:
    """`apps`: those that are served, in order; `lines` are further lines of each."""

    def __init__(self, program, folder, zoo, policies, apps, lines=""):
        self.program, self.folder, self.apps = program, folder, apps
        self.http, self.admin = free_port(), free_port()
        os.makedirs(f"{folder}/policies", exist_ok=True)
        for name in ["fcfs", "stability"]:
            shutil.copy(f"{policies}/{name}.wasm", f"{folder}/policies/{name}.wasm")
        shutil.copy(f"{policies}/fcfs.wasm", f"{folder}/policies/live.wasm")
        with open(f"{folder}/operators", "w") as file:
            file.write(f"anna {TOKEN}\n")
        os.chmod(f"{folder}/operators", 0o600)
        tables = "".join(f'[[app]]\nname = "{app}"\nzoo = "{zoo}"\n{lines}\n' for app in apps)
        with open(f"{folder}/switchyard.toml", "w") as file:
            file.write(f"""
[server]
http = "127.0.0.1:{self.http}"
admin = "127.0.0.1:{self.admin}"
operators = "{folder}/operators"
{tables}
[[worker]]
name = "cpu-a"
threads = 1
memory_mb = 64
[[worker]]
name = "cpu-b"
threads = 1
memory_mb = 64
[[pool]]
name = "main"
apps = {json.dumps(apps)}
workers = ["cpu-a", "cpu-b"]
policy = "live"
[policies]
dir = "{folder}/policies"
cache = "{folder}/compiled"
[profile]
dir = "{folder}/profiles"
measure_s = 2
""")
        self.start()

    def start(self):
        with open(f"{self.folder}/server.log", "a") as log:
            command = [self.program, "serve", "--config", f"{self.folder}/switchyard.toml"]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.time() + 300
        while time.time() < end and self.process.poll() is None:
            try:
                if all(self.infer(http.client.HTTPConnection("127.0.0.1", self.http, 10), app) for app in self.apps):
                    return
            except OSError:
                pass
            time.sleep(0.3)
        raise OSError(f"the server answers no request after 300 s: {self.folder}/server.log")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def infer(self, connection, app):
        connection.request("POST", f"/v2/models/{app}/infer", BODIES[app])
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200

    def status(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, 10)
        connection.request("GET", "/admin/v1/status")
        return json.loads(connection.getresponse().read())["pools"][0]

    def flood(self, app, connections, seconds):
        """Starts `wrk` on one app."""
        script = f"{self.folder}/{app}.lua"
        with open(script, "w") as file:
            file.write(f"wrk.method = 'POST'\nwrk.body = [[{BODIES[app]}]]\n")
        url = f"http://127.0.0.1:{self.http}/v2/models/{app}/infer"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s", "-s", script, url]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def tally(output):
    """Answers of `wrk`, those with another status than 200, and its socket errors."""
    answers = int(re.search(r"(\d+) requests in", output)[1])
    other = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    return answers, int(other[1]) if other else 0, sum(map(int, broken.groups())) if broken else 0


class Steady:
    """Clients of one app that send at a rate of `per_second` together."""

    def __init__(self, server, app, per_second, clients=4):
        self.server, self.app = server, app
        self.stopping = threading.Event()
        pause = clients / per_second
        for nth in range(clients):
            thread = threading.Thread(target=self.send, args=(nth * pause / clients, pause), daemon=True)
            thread.start()

    def send(self, offset, pause):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http, timeout=10)
        due = time.time() + offset
        while not self.stopping.is_set():
            time.sleep(max(due - time.time(), 0))
            due = max(due + pause, time.time() - pause)
            try:
                self.server.infer(connection, self.app)
            except (OSError, http.client.HTTPException):
                connection.close()
                time.sleep(0.2)
