"""A headless Chromium over the DevTools protocol: text of pages, keys, screenshots."""

import base64
import json
import os
import socket
import subprocess
import time
import urllib.request

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}


class Socket:
    """The client's end of a WebSocket: text messages only."""

    def __init__(self, url, seconds):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.split(":")
        self.stream = socket.create_connection((name, int(port)), timeout=seconds)
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        self.stream.sendall(head.encode())
        self.reader = self.stream.makefile("rb")
        status = self.reader.readline()
        if b" 101 " not in status:
            raise OSError(f"no WebSocket: {status.decode().strip()}")
        while self.reader.readline() != b"\r\n":
            pass

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        if size < 126:
            head = bytes([0x81, 0x80 | size])
        elif size < 1 << 16:
            head = bytes([0x81, 0xFE]) + size.to_bytes(2, "big")
        else:
            head = bytes([0x81, 0xFF]) + size.to_bytes(8, "big")
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.stream.sendall(head + mask + masked)

    def receive(self):
        parts = b""
        while True:
            first, second = self.reader.read(2)
            size = second & 0x7F
            if size >= 126:
                size = int.from_bytes(self.reader.read(2 if size == 126 else 8), "big")
            data = self.reader.read(size)
            if first & 0x0F in (0, 1):
                parts += data
                if first & 0x80:
                    return parts.decode()


class Browser:
    def __init__(self, folder, width, height):
        profile = f"{folder}/chromium"
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
        options += ["--remote-debugging-port=0", f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        with open(f"{folder}/chromium.log", "w") as log:
            self.process = subprocess.Popen(["chromium", *options, "about:blank"], stdout=log, stderr=log)
        port = self.port(f"{profile}/DevToolsActivePort")
        request = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=30) as answer:
            target = json.loads(answer.read())
        self.socket = Socket(target["webSocketDebuggerUrl"], 60)
        self.last = 0
        self.problems = []
        self.width, self.height = width, height
        self.size(height)
        for domain in ["Page", "Runtime", "Log"]:
            self.call(f"{domain}.enable")

    def port(self, file):
        end = time.time() + 60
        while time.time() < end:
            try:
                with open(file) as lines:
                    return int(lines.readline())
            except (OSError, ValueError):
                time.sleep(0.1)
        raise OSError(f"Chromium has no port after 60 s: {file}")

    def call(self, method, **parameters):
        self.last += 1
        self.socket.send(json.dumps({"id": self.last, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.last:
                if "error" in message:
                    raise ValueError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def note(self, message):
        """Keeps uncaught exceptions, and breaches of the content security policy."""
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"])[:600])
        entry = parameters.get("entry", {})
        if message.get("method") == "Log.entryAdded" and entry["level"] == "error":
            if entry.get("source") != "network":
                self.problems.append(entry["text"])

    def size(self, height):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=self.width, height=height, deviceScaleFactor=1, mobile=False
        )

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise ValueError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def text(self, selector):
        """The text of the first element that is found and shown, otherwise nothing."""
        found = f"document.querySelector({json.dumps(selector)})"
        return self.evaluate(f"{found}?.offsetParent || {found}?.open ? {found}.innerText : ''")

    def key(self, name):
        code = KEYS[name]
        key = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if name == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def type(self, text):
        for letter in text:
            self.call("Input.dispatchKeyEvent", type="keyDown", key=letter, text=letter)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def tab_to(self, selector, most=60):
        """Presses the tab key until this element has the focus."""
        for _ in range(most):
            if self.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                return
            self.key("Tab")
        raise ValueError(f"{most} tabs do not reach {selector}")

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def screenshot(self, file, height):
        self.evaluate("window.scrollTo(0, 0)")
        self.size(height)
        time.sleep(0.5)
        shot = self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)
        self.size(self.height)
        with open(file, "wb") as out:
            out.write(base64.b64decode(shot["data"]))
        return os.path.getsize(file)

    def close(self):
        self.process.terminate()
        self.process.wait(30)
