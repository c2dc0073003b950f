// The component: the contract's five functions around the scheduler.

import { Scheduler } from "./scheduler.js";

// Position in a worker's queue.
const AT_THE_END = 0xffffffff;

let scheduler;

function describe() {
  return {
    name: "earliest-deadline",
    version: "0.1.0",
    summary: "earliest deadline first, the most accurate variant that is in time",
    every: undefined,
    whenEmpty: false,
    on: { arrival: true, workerIdle: true },
    wants: {},
  };
}

function configure(catalog, settings) {
  // An unknown setting is mostly a misspelt name: refuse it.
  const [unknown] = Object.keys(JSON.parse(settings)).sort();
  if (unknown !== undefined) throw `settings: ${unknown}: unknown setting; this policy has none`;
  scheduler = new Scheduler(catalog);
}

function schedule(window) {
  const batches = scheduler.schedule(window);
  const { id } = window.requests ?? { id: [] };
  const dispatches = batches.map(({ worker, variant, fromStage, toStage, exit, members }) => ({
    worker,
    variant,
    fromStage,
    toStage,
    exit,
    place: AT_THE_END,
    size: members.length,
  }));
  const members = batches.flatMap((batch) => batch.members.map((position) => id[position]));
  return {
    dispatches,
    members: BigUint64Array.from(members),
    revokes: new BigUint64Array(),
    rejects: new BigUint64Array(),
    answers: new BigUint64Array(),
    routes: [],
    wake: undefined,
    reasons: [],
  };
}

function save() {
  return new Uint8Array();
}

function restore(_state) {}

export const scheduling = { describe, configure, schedule, save, restore };
