// Events: swaps and reloads as the server keeps them, and changes that this page has seen.

const EVENTS_MAX = 60;

const SWAPS = {
  switched: ["good", "policy switched"],
  rolled_back: ["warn", "policy rolled back"],
  refused: ["bad", "policy refused"],
  removed: ["bad", "policy removed: the fallback serves"],
  canary_began: ["idle", "canary began"],
  promoted: ["good", "candidate promoted"],
  kept: ["warn", "canary ended, the policy of before serves on"],
};

// Seen by this page: faults, lost workers, restarts, overloads and orders.
const seen = [];
let before = null;

function happened(kind, text) {
  seen.unshift({ key: `seen ${Date.now()} ${text}`, at: new Date(), kind, text });
  seen.length = Math.min(seen.length, EVENTS_MAX);
}

function faultsOf(pool) {
  return Object.values(pool.faults).reduce((sum, count) => sum + count, 0);
}

// Compares with the status of a second ago.
function notice(status) {
  if (before && status.now_us < before.now_us) {
    happened("warn", "the server has restarted");
    before = null;
  }
  for (const pool of status.pools) {
    const old = before?.pools.find((one) => one.pool === pool.pool);
    if (!old) {
      continue;
    }
    const more = faultsOf(pool) - faultsOf(old);
    if (more > 0) {
      happened("bad", `pool ${pool.pool}: ${more} policy faults. ${pool.last_fault ?? ""}`);
    }
    for (const [at, worker] of pool.workers.entries()) {
      if (old.workers[at] && old.workers[at].up !== worker.up) {
        happened(worker.up ? "good" : "bad", `worker ${worker.name} ${worker.up ? "is back" : "is lost"}`);
      }
    }
  }
  if (before && before.waits_for !== status.waits_for) {
    happened(status.ready ? "good" : "bad", status.ready ? "ready" : `not ready: ${status.waits_for}`);
  }
  before = status;
}

function keptEvents(status) {
  const began = Date.now() - status.now_us / 1e3;
  const at = (us) => new Date(began + us / 1e3);
  return status.pools.flatMap((pool) => {
    const swaps = pool.policies.swaps.map((swap) => {
      const [kind, words] = SWAPS[swap.result] ?? ["idle", swap.result];
      const name = swap.policy || component(swap.file);
      const by = swap.by ? ` by ${swap.by}` : "";
      const why = swap.error ?? swap.reason;
      const text = `pool ${pool.pool}: ${words}: ${name}${by}${why ? `. ${why}` : ""}`;
      return { key: `swap ${pool.pool} ${swap.at_us} ${swap.result}`, at: at(swap.at_us), kind, text };
    });
    const reloads = pool.reloads.map((reload) => {
      const result = reload.error ? `weights refused. ${reload.error}` : "weights changed";
      const kind = reload.error ? "bad" : "good";
      return { key: `reload ${reload.variant} ${reload.at_us}`, at: at(reload.at_us), kind, text: `${reload.variant}: ${result}` };
    });
    return [...swaps, ...reloads];
  });
}

function makeEvent(event) {
  const when = element("time", { datetime: event.at.toISOString() }, clockOf(event.at));
  return element("li", { "data-level": event.kind }, when, element("span", {}, event.text));
}

function showEvents(status) {
  notice(status);
  const events = [...keptEvents(status), ...seen];
  events.sort((one, other) => other.at - one.at);
  list(byId("events"), events.slice(0, EVENTS_MAX), (event) => event.key, makeEvent, () => {});
}
