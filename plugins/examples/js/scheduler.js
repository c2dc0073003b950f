// Earliest deadline first, independent of WebAssembly.
//
// `app.js` passes the contract's objects: columns of 32-bit numbers are Uint32Array, of 64-bit
// numbers BigUint64Array. Times are converted to numbers: faster to compare, and exact for 285 years
// of microseconds.

// `runningVariant` of an idle worker.
export const NOTHING = 0xffffffff;

// Stands for an unknown quality, so that such variants compare by latency.
const UNKNOWN_QUALITY = 0.5;

// Reads the catalog once and plans each window.
export class Scheduler {
  constructor(catalog) {
    this.variants = catalog.variants;
    const rows = wholeRuns(catalog);
    // Per worker and app: the choices, by quality, then by latency.
    this.menus = catalog.workers.map((worker) =>
      catalog.apps.map((_, app) => menu(catalog, rows, worker, app)),
    );
  }

  // The batches to start now; members are positions in the window's columns. Other requests stay
  // pending.
  schedule(window) {
    // Parts of a window without content are undefined.
    const { requests, workers, progress = [] } = window;
    const idle = [];
    for (let worker = 0; worker < workers.up.length; worker += 1) {
      const free = workers.runningVariant[worker] === NOTHING && workers.queued[worker] === 0;
      if (free && workers.up[worker] !== 0) idle.push(worker);
    }
    if (idle.length === 0 || requests === undefined) return [];
    // The worker that has been idle longest goes first.
    const busyUntil = Array.from(workers.busyUntil, Number);
    idle.sort((a, b) => busyUntil[a] - busyUntil[b] || a - b);

    const deadline = Array.from(requests.deadline, Number);
    const queues = this.byDeadline(requests, progress, deadline);
    const batches = [];
    for (const worker of idle) {
      // Parked requests first: only this worker has their activations.
      const batch =
        this.resume(worker, progress) ??
        this.start(worker, queues, deadline, Number(window.now));
      if (batch) batches.push(batch);
    }
    return batches;
  }

  // Per app, the requests that have run no stage, by deadline.
  byDeadline(requests, progress, deadline) {
    const queues = this.menus[0].map(() => []);
    const begun = new Set(progress.map(({ index }) => index));
    const { app } = requests;
    for (let position = 0; position < deadline.length; position += 1) {
      if (!begun.has(position)) queues[app[position]].push(position);
    }
    for (const queue of queues) queue.sort((a, b) => deadline[a] - deadline[b] || a - b);
    return queues;
  }

  // The oldest request parked on this worker, with those at the same stage.
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

  // The request with the earliest deadline chooses the app.
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

// The largest batch that meets the deadline, on the most accurate variant that meets it. If none
// does: the largest batch, on the fastest variant.
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

// The variants that can serve an app on a worker.
function menu(catalog, rows, worker, app) {
  const choices = [];
  for (const [index, variant] of catalog.variants.entries()) {
    const { stages, exits, maxBatch } = variant;
    const latencies = interpolate(rows.get(`${worker.kind} ${index}`) ?? new Map(), maxBatch);
    if (variant.app !== app || variant.memoryBytes > worker.memoryBytes) continue;
    if (latencies.length === 0) continue;
    const exit = exits.length - 1;
    const quality = exits[exit].quality ?? UNKNOWN_QUALITY;
    choices.push({ variant: index, stages, exit, quality, latencies });
  }
  return choices.sort((a, b) => b.quality - a.quality || a.latencies[0] - b.latencies[0]);
}

// Measured latencies over all stages: kind and variant to a map of batch to microseconds.
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

// Latency by batch from 1 on, interpolated as the host does: linear, rounded up to the microsecond.
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
