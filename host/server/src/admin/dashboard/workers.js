// Workers: a lane each, whose columns are slots of time, and a table of what ran.

const LANE = { slots: 19, width: 10, height: 40 };
const COLOURS = 8;

// A variant keeps its colour for the life of the page.
const colours = new Map();

function colourOf(variant) {
  if (!colours.has(variant)) {
    colours.set(variant, colours.size % COLOURS);
  }
  return `v${colours.get(variant)}`;
}

function stagesOf([first, end, all]) {
  if (first === 0 && end === all) {
    return all === 1 ? "whole" : `all ${all}`;
  }
  return end - first === 1 ? `${end} of ${all}` : `${first + 1}–${end} of ${all}`;
}

const exitOf = (run) => run.exit ?? "parked";

const kindOf = (run) => [run.variant, run.stages.join("-"), exitOf(run)].join(" ");

function lanesOf(status) {
  return status.pools.flatMap((pool, at) => {
    const { recent } = status.views[at];
    return recent.workers.map((worker, nth) => ({
      key: `${pool.pool}/${worker.worker}`,
      name: worker.worker,
      pool: pool.pool,
      up: pool.workers[nth]?.up ?? true,
      slotUs: recent.slot_us,
      slots: recent.slots,
      // The newest slot has not ended.
      runs: worker.runs.filter((run) => run.slot < recent.slots - 1),
    }));
  });
}

function bars(lane) {
  const heights = new Map();
  return lane.runs.map((run) => {
    const below = heights.get(run.slot) ?? 0;
    const height = Math.min((run.busy_us / lane.slotUs) * LANE.height, LANE.height - below);
    heights.set(run.slot, below + height);
    const column = LANE.slots - lane.slots + 1 + run.slot;
    const rect = drawing("rect", {
      class: colourOf(run.variant),
      x: column * LANE.width + 0.5,
      y: (LANE.height - below - height).toFixed(2),
      width: LANE.width - 1,
      height: height.toFixed(2),
    });
    const batches = `${run.batches} batches, ${run.requests} requests`;
    const text = `${run.variant}, exit ${exitOf(run)}, stages ${stagesOf(run.stages)}: ${batches}`;
    rect.append(drawing("title", {}, text));
    return rect;
  });
}

const busyOf = (lane) => {
  const seen = Math.max(lane.slots - 1, 1) * lane.slotUs;
  return Math.min(lane.runs.reduce((sum, run) => sum + run.busy_us, 0) / seen, 1);
};

function makeLane() {
  const row = element("div", { class: "lane" });
  row.name = element("span", { class: "name" });
  const view = `0 0 ${LANE.slots * LANE.width} ${LANE.height}`;
  row.svg = drawing("svg", { viewBox: view, preserveAspectRatio: "none", role: "img" });
  row.busy = element("span", { class: "number" });
  row.append(row.name, row.svg, row.busy);
  return row;
}

function updateLane(row, lane) {
  const busy = lane.up ? `${percent(busyOf(lane))} busy` : "lost";
  write(row.name, lane.name);
  write(row.busy, busy);
  mark(row, "data-level", lane.up ? "good" : "bad");
  mark(row.svg, "aria-label", `${lane.name}: ${busy}`);
  row.svg.replaceChildren(...bars(lane));
}

function kindsOf(lanes) {
  const kinds = new Map();
  for (const lane of lanes) {
    const seconds = (Math.max(lane.slots - 1, 1) * lane.slotUs) / 1e6;
    for (const run of lane.runs) {
      const key = kindOf(run);
      const kind = kinds.get(key) ?? { run, key, workers: new Set(), batches: 0, requests: 0, perSecond: 0, busy: 0 };
      kind.workers.add(lane.name);
      kind.batches += run.batches;
      kind.requests += run.requests;
      kind.perSecond += run.requests / seconds;
      kind.busy += run.busy_us / 1e6 / seconds / lanes.length;
      kinds.set(key, kind);
    }
  }
  return [...kinds.values()].sort((one, other) => other.busy - one.busy);
}

function makeKind() {
  const row = element("tr");
  row.cells7 = ["name", "", "", "", "number", "number", "number"].map((kind) => element("td", { class: kind }));
  row.swatch = element("i", { "aria-hidden": "true" });
  row.label = element("span");
  row.cells7[0].append(row.swatch, row.label);
  row.append(...row.cells7);
  return row;
}

function updateKind(row, kind) {
  const mean = kind.batches > 0 ? (kind.requests / kind.batches).toFixed(1) : "–";
  const workers = [...kind.workers].join(", ");
  const texts = [exitOf(kind.run), stagesOf(kind.run.stages), workers, rate(kind.perSecond), mean, percent(kind.busy)];
  mark(row.swatch, "class", `swatch ${colourOf(kind.run.variant)}`);
  write(row.label, kind.run.variant);
  texts.forEach((text, at) => write(row.cells7[at + 1], text));
}

function showWorkers(status) {
  const lanes = lanesOf(status);
  list(byId("workers"), lanes, (lane) => lane.key, makeLane, updateLane);
  const body = byId("kinds").tBodies[0];
  list(body, kindsOf(lanes), (kind) => kind.key, makeKind, updateKind);
}
