"""Drives the dashboard of a real server in a real browser, by keyboard, and takes its screenshots.

Arguments: the program, a folder for files, the folder of models, the folder of policies, the folder of the
figures, and `page` or `orders`. Needs `chromium` and `wrk` on the path.
"""

import os
import sys
import time

from browser import Browser
from server import Server, Steady, TOKEN, tally

program, folder, zoo, policies, figures = [os.path.abspath(path) for path in sys.argv[1:6]]
mode = sys.argv[6]

NAMED_WITHIN_S = 15
SCREENSHOT_BYTES_MAX = 250_000
PICTURE_HEIGHT = 1360
HEART_PER_S, IMAGES_PER_S = 60, 20


def wait(what, condition, seconds=60):
    began = time.time()
    while time.time() - began < seconds:
        found = condition()
        if found:
            return time.time() - began
        time.sleep(0.1)
    sys.exit(f"waited {seconds} s for {what}")


def number(text):
    try:
        return float(text.replace(",", "").split()[0])
    except (ValueError, IndexError):
        return -1.0


def order(page, button, choice=None):
    """Presses a button by keyboard, and confirms; types the token if the page asks for it."""
    if choice:
        # A list joins letters to a word until a second has passed.
        time.sleep(1.1)
        page.tab_to("select[id^=component]")
        page.type(choice)
    page.tab_to(button)
    page.key("Enter")
    wait("the dialog", lambda: page.text("#order"))
    if page.text("#order-ask"):
        page.type(TOKEN)
    page.key("Enter")
    wait("the end of the order", lambda: not page.text("#order"), 20)


def serves(page, name):
    return wait(f"{name} on the page", lambda: page.text(".policy h3").startswith(name))


def check_page(server, page):
    heart, images = Steady(server, "heart", HEART_PER_S), Steady(server, "images", IMAGES_PER_S)
    offered = HEART_PER_S + IMAGES_PER_S
    shown = lambda: number(page.text("#totals dd"))
    wait("live numbers", lambda: 0.8 * offered < shown() < 1.2 * offered)
    print(f"goodput on the page: {shown():.0f} requests/s of {offered} offered")

    order(page, ".policy .swap", "stab")
    serves(page, "stability@")
    if not server.status()["policy"].startswith("stability@"):
        sys.exit("the page shows stability, the server does not")
    print("swapped to stability by keyboard, with the token typed once")
    order(page, ".policy .rollback")
    serves(page, "fcfs@")
    print("rolled back to fcfs by keyboard, without the token")

    server.stop()
    wait("silence on the page", lambda: page.text("#state").startswith("no answer"))
    server.start()
    wait("the restarted server", lambda: page.text("#state") == "ready")
    wait("the event", lambda: "the server has restarted" in page.text("#events"))
    print("the page survives a restart of the server")

    order(page, ".policy .shadow", "stab")
    time.sleep(25)
    picture(page, "light", "dashboard")
    wait("a page without an alarm", lambda: not page.text("#alarm"))
    flood = server.flood("heart", 256, 40)
    serving = page.text(".policy h3")
    named = lambda: "App heart:" in page.text("#alarm") and f"policy is {serving}" in page.text("#alarm")
    took = wait("the overload on the page", named, NAMED_WITHIN_S)
    print(f"overload named after {took:.1f} s: {page.text('#alarm')}")
    time.sleep(12)
    print(f"12 s later: {page.text('#alarm')}")
    picture(page, "dark", "dashboard-overload")
    print(f"flood: {tally(flood.communicate()[0])} (answers, not 200, socket errors)")
    wait("the end of the alarm", lambda: not page.text("#alarm"))
    print("the alarm ends with the overload")
    for clients in [heart, images]:
        clients.stopping.set()


def picture(page, scheme, name):
    page.scheme(scheme)
    time.sleep(1)
    size = page.screenshot(f"{figures}/{name}.png", PICTURE_HEIGHT)
    print(f"{name}.png: {size} bytes")
    if size > SCREENSHOT_BYTES_MAX:
        sys.exit(f"{name}.png has {size} bytes, more than {SCREENSHOT_BYTES_MAX}")


def check_orders(server, page):
    seconds = 100
    load = server.flood("heart", 48, seconds)
    wait("load", lambda: number(page.text("#totals dd")) > 100)
    rates = []
    for nth in range(20):
        name = "fcfs" if nth % 2 else "stability"
        order(page, ".policy .swap", name[:4])
        serves(page, f"{name}@")
        rates.append(number(page.text("#totals dd")))
    order(page, ".policy .shadow", "stab")
    wait("the shadow", lambda: page.text(".policy .promote"))
    order(page, ".policy .promote")
    serves(page, "stability@")
    order(page, ".policy .rollback")
    serves(page, "fcfs@")
    print("20 swaps, a promotion and a rollback from the browser")
    if load.poll() is not None:
        sys.exit(f"the load ended before the orders: more than {seconds} s")
    answers, other, broken = tally(load.communicate()[0])
    wait("an empty pool", lambda: server.status()["live"] == 0)
    status = server.status()
    lost = status["imbalance"] + status["accepted"] - status["ended"]
    print(f"goodput on the page during the orders: {min(rates):.0f} to {max(rates):.0f} requests/s")
    print(f"load: {answers} answers in {seconds} s ({answers / seconds:.0f}/s), {other} not 200, {broken} socket errors")
    print(f"server: {status['accepted']} accepted, {status['ended']} ended, {lost} lost; {status['outcomes']}")
    if lost or broken or other:
        sys.exit("requests were lost or refused")


server = browser = None
try:
    apps = ["heart", "images"] if mode == "page" else ["heart"]
    # Orders: the fastest variant, and late requests are served, so that each request has an answer.
    lines = "" if mode == "page" else 'variants = ["cnn-small"]\nlate = "serve"'
    server = Server(program, folder, zoo, policies, apps, lines)
    browser = Browser(folder, 1440, 1000)
    browser.call("Page.navigate", url=f"http://127.0.0.1:{server.admin}/")
    wait("the page", lambda: browser.text("#state") == "ready")
    {"page": check_page, "orders": check_orders}[mode](server, browser)
    if browser.problems:
        sys.exit(f"the browser reports: {browser.problems}")
finally:
    if browser:
        browser.close()
    if server and server.process.poll() is None:
        server.stop()
