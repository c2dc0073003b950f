// Earliest deadline first: what to run where, decided without knowing about WebAssembly.
//
// `app.js` hands this module the contract's own objects: columns of 32-bit numbers are
// Uint32Array, of 64-bit ones BigUint64Array. Times are made ordinary numbers, which are exact for
// 285 years of microseconds and much quicker to compare.

// `runningVariant` of a worker that runs nothing.
export const NOTHING = 0xffffffff;

// Keeps what the catalog says, worked out once, and answers windows.
export class Scheduler {
  constructor(catalog) {
    this.variants = catalog.variants;
    const rows = wholeRuns(catalog);
    // Per worker, per app: its choices, most accurate first, equally accurate ones fastest first.
    this.menus = catalog.workers.map((worker) =>
      catalog.apps.map((_, app) => menu(catalog, rows, worker, app)),
    );
  }

  // The batches to start now, their members as positions in the window's columns. What is in none
  // of them stays pending.
  schedule(window) {
    const { requests, workers } = window;
    const idle = [];
    for (let worker = 0; worker < workers.up.length; worker += 1) {
      const free = workers.runningVariant[worker] === NOTHING && workers.queued[worker] === 0;
      if (free && workers.up[worker] !== 0) idle.push(worker);
    }
    if (idle.length === 0) return [];
    // The one that has been idle longest goes first.
    const busyUntil = Array.from(workers.busyUntil, Number);
    idle.sort((a, b) => busyUntil[a] - busyUntil[b] || a - b);

    const deadline = Array.from(requests.deadline, Number);
    const queues = this.byDeadline(requests, deadline);
    const batches = [];
    for (const worker of idle) {
      // What is half run on a worker can end nowhere else, so it goes first.
      const batch =
        this.resume(worker, requests.progress) ??
        this.start(worker, queues, deadline, Number(window.now));
      if (batch) batches.push(batch);
    }
    return batches;
  }

  // Per app, the requests that have run nothing yet, most urgent first.
  byDeadline(requests, deadline) {
    const queues = this.menus[0].map(() => []);
    const begun = new Set(requests.progress.map(({ index }) => index));
    const { app } = requests;
    for (let position = 0; position < deadline.length; position += 1) {
      if (!begun.has(position)) queues[app[position]].push(position);
    }
    for (const queue of queues) queue.sort((a, b) => deadline[a] - deadline[b] || a - b);
    return queues;
  }

  // The oldest request parked on this worker, and those that can go on with it.
  resume(worker, progress) {
    const here = progress.filter((p) => p.worker === worker).sort((a, b) => a.index - b.index);
    if (here.length === 0) return undefined;
    const [first] = here;
    const { stages, exits, maxBatch } = this.variants[first.variant];
    const together = here.filter(
      (p) => p.variant === first.variant && p.stagesRun === first.stagesRun,
    );
    return {
      worker,
      variant: first.variant,
      fromStage: first.stagesRun,
      toStage: stages,
      exit: exits.length - 1,
      members: together.slice(0, maxBatch).map(({ index }) => index),
    };
  }

  // The most urgent request chooses the app, and the rest of the app joins it.
  start(worker, queues, deadline, now) {
    const menus = this.menus[worker];
    let app;
    for (const [other, queue] of queues.entries()) {
      if (queue.length === 0 || menus[other].length === 0) continue;
      const [head, first] = [queue[0], queues[app]?.[0]];
      const sooner = first === undefined || deadline[head] < deadline[first];
      if (sooner || (deadline[head] === deadline[first] && head < first)) app = other;
    }
    if (app === undefined) return undefined;
    const queue = queues[app];
    const { choice, size } = choose(menus[app], queue.length, deadline[queue[0]] - now);
    const { variant, stages, exit } = choice;
    const members = queue.splice(0, size);
    return { worker, variant, fromStage: 0, toStage: stages, exit, members };
  }
}

// As many as are in time with any variant, with the most accurate that is. When the most urgent
// deadline is lost: as many as any variant takes, with the fastest.
function choose(choices, waiting, slack) {
  const most = Math.min(waiting, Math.max(...choices.map(({ latencies }) => latencies.length)));
  for (let size = most; size > 0; size -= 1) {
    const choice = choices.find(({ latencies }) => latencies[size - 1] <= slack);
    if (choice) return { choice, size };
  }
  const able = choices.filter(({ latencies }) => latencies.length >= most);
  const faster = (a, b) => (b.latencies[most - 1] < a.latencies[most - 1] ? b : a);
  return { choice: able.reduce(faster), size: most };
}

// What can answer an app's requests on a worker.
function menu(catalog, rows, worker, app) {
  const choices = [];
  for (const [index, variant] of catalog.variants.entries()) {
    const { stages, exits, maxBatch } = variant;
    const latencies = interpolate(rows.get(`${worker.kind} ${index}`) ?? new Map(), maxBatch);
    if (variant.app !== app || variant.memoryBytes > worker.memoryBytes) continue;
    if (latencies.length === 0) continue;
    const exit = exits.length - 1;
    choices.push({ variant: index, stages, exit, accuracy: exits[exit].accuracy, latencies });
  }
  return choices.sort((a, b) => b.accuracy - a.accuracy || a.latencies[0] - b.latencies[0]);
}

// Measured latencies of whole runs: kind and variant to a table of batch to microseconds.
function wholeRuns(catalog) {
  const runs = new Map();
  for (const row of catalog.profile) {
    const whole = row.fromStage === 0 && row.toStage === catalog.variants[row.variant].stages;
    if (!whole || row.exit === undefined) continue;
    const key = `${row.kind} ${row.variant}`;
    if (!runs.has(key)) runs.set(key, new Map());
    runs.get(key).set(row.batch, Number(row.latency));
  }
  return runs;
}

// Latency by batch, 1 and up, as the host reckons: linear, rounded up to the microsecond.
export function interpolate(measured, maxBatch) {
  const sizes = [...measured.keys()].sort((a, b) => a - b);
  const latencies = [];
  for (let batch = 1; batch <= maxBatch; batch += 1) {
    const at = sizes.findIndex((size) => size >= batch);
    if (at === -1) break;
    const high = measured.get(sizes[at]);
    if (sizes[at] === batch || at === 0) {
      latencies.push(high);
      continue;
    }
    const low = measured.get(sizes[at - 1]);
    const [into, span] = [batch - sizes[at - 1], sizes[at] - sizes[at - 1]];
    latencies.push(low + Math.ceil(((high - low) * into) / span));
  }
  return latencies;
}
