// npm test

import assert from "node:assert/strict";
import { test } from "node:test";

import { interpolate, NOTHING, Scheduler } from "./scheduler.js";

const variant = (app, quality, more) => ({
  app,
  exits: [{ quality }],
  stages: 1,
  maxBatch: 4,
  memoryBytes: 1n,
  ...more,
});

const rows = (variant, latencies, toStage = 1) =>
  latencies.map((us, n) => {
    const latency = BigInt(us);
    return { kind: 0, variant, fromStage: 0, toStage, exit: 0, batch: n + 1, latency };
  });

// App 0 has a large and a small variant; app 1 has one variant with three stages.
const catalog = {
  apps: ["heart", "voice"],
  variants: [
    variant(0, 0.9, { memoryBytes: 8n }),
    variant(0, 0.7),
    variant(1, 0.8, { stages: 3 }),
  ],
  workers: [
    { kind: 0, memoryBytes: 9n },
    { kind: 0, memoryBytes: 5n },
  ],
  profile: [
    ...rows(0, [40, 60, 80, 100]),
    ...rows(1, [10, 12, 14, 16]),
    ...rows(2, [30, 40, 50, 60], 3),
  ],
};

// Requests as [app, deadline] in order of arrival; the time is 100.
function plan(requests, { progress, idle = [true, true] } = {}) {
  return new Scheduler(catalog).schedule({
    now: 100n,
    requests: requests.length === 0 ? undefined : {
      app: Uint32Array.from(requests, ([app]) => app),
      deadline: BigUint64Array.from(requests, ([, deadline]) => BigInt(deadline)),
    },
    progress,
    workers: {
      busyUntil: new BigUint64Array(2),
      runningVariant: Uint32Array.from(idle, (free) => (free ? NOTHING : 1)),
      queued: new Uint32Array(2),
      up: Uint32Array.of(1, 1),
    },
  });
}

const batch = (worker, variant, members, fromStage = 0, toStage = 1) => ({
  worker,
  variant,
  fromStage,
  toStage,
  exit: 0,
  members,
});

test("the most urgent request chooses the app", () => {
  // The large variant does not fit on worker 1. Within the app, by deadline.
  assert.deepEqual(
    plan([
      [0, 900],
      [1, 300],
      [0, 800],
    ]),
    [batch(0, 2, [1], 0, 3), batch(1, 1, [2, 0])],
  );
});

test("the batch and then the accuracy are as large as the deadline allows", () => {
  const idle = [true, false];
  assert.deepEqual(plan([[0, 140]], { idle }), [batch(0, 0, [0])]);
  // Only the small variant meets the deadline with two.
  const two = [
    [0, 140],
    [0, 150],
  ];
  assert.deepEqual(plan(two, { idle }), [batch(0, 1, [0, 1])]);
});

test("a missed deadline gets the fastest variant", () => {
  assert.deepEqual(plan([[0, 50]], { idle: [true, false] }), [batch(0, 1, [0])]);
});

test("parked requests resume on their worker", () => {
  const progress = [{ index: 1, worker: 0, variant: 2, stagesRun: 1 }];
  const requests = [
    [0, 120],
    [1, 900],
  ];
  assert.deepEqual(plan(requests, { progress }), [batch(0, 2, [1], 1, 3), batch(1, 1, [0])]);
});

test("busy workers get nothing", () => {
  assert.deepEqual(plan([[0, 900]], { idle: [false, false] }), []);
});

test("a window without requests gets no batches", () => {
  assert.deepEqual(plan([]), []);
});

test("latencies between measured batches are rounded up", () => {
  const measured = new Map([
    [1, 10],
    [4, 20],
  ]);
  assert.deepEqual(interpolate(measured, 8), [10, 14, 17, 20]);
  assert.deepEqual(interpolate(new Map(), 8), []);
});
