"""python3 -m unittest"""

import unittest
from types import SimpleNamespace as Obj

from scheduler import NOTHING, Batch, Scheduler, interpolate


def variant(app, quality, memory_bytes=1, stages=1):
    exits = [Obj(quality=quality)]
    return Obj(app=app, exits=exits, stages=stages, max_batch=4, memory_bytes=memory_bytes)


def rows(variant, latencies, stages=1):
    return [
        Obj(kind=0, variant=variant, from_stage=0, to_stage=stages, exit=0, batch=b, latency=us)
        for b, us in enumerate(latencies, start=1)
    ]


# App 0 has a large and a small variant; app 1 has one variant with three stages.
CATALOG = Obj(
    apps=["heart", "voice"],
    variants=[variant(0, 0.9, memory_bytes=8), variant(0, 0.7), variant(1, 0.8, stages=3)],
    workers=[Obj(kind=0, memory_bytes=9), Obj(kind=0, memory_bytes=5)],
    profile=rows(0, [40, 60, 80, 100])
    + rows(1, [10, 12, 14, 16])
    + rows(2, [30, 40, 50, 60], stages=3),
)


def window(*requests, progress=(), idle=(True, True)):
    """Requests as (app, deadline) in order of arrival; the time is 100."""
    return Obj(
        now=100,
        requests=Obj(
            id=[10 + n for n in range(len(requests))],
            app=[app for app, _ in requests],
            deadline=[deadline for _, deadline in requests],
        )
        if requests
        else None,
        progress=list(progress) or None,
        workers=Obj(
            busy_until=[0, 0],
            running_variant=[NOTHING if free else 1 for free in idle],
            queued=[0, 0],
            up=[1, 1],
        ),
    )


def plan(*requests, **more):
    return Scheduler(CATALOG).schedule(window(*requests, **more))


class Scheduling(unittest.TestCase):
    def test_the_most_urgent_request_chooses_the_app(self):
        batches = plan((0, 900), (1, 300), (0, 800))
        self.assertEqual(batches[0], Batch(0, 2, 0, 3, 0, [1]))
        # The large variant does not fit on worker 1. Within the app, by deadline.
        self.assertEqual(batches[1], Batch(1, 1, 0, 1, 0, [2, 0]))

    def test_the_batch_and_then_the_accuracy_are_as_large_as_the_deadline_allows(self):
        idle = (True, False)
        self.assertEqual(plan((0, 140), idle=idle), [Batch(0, 0, 0, 1, 0, [0])])
        # Only the small variant meets the deadline with two.
        self.assertEqual(plan((0, 140), (0, 150), idle=idle), [Batch(0, 1, 0, 1, 0, [0, 1])])

    def test_a_missed_deadline_gets_the_fastest_variant(self):
        self.assertEqual(plan((0, 50), idle=(True, False)), [Batch(0, 1, 0, 1, 0, [0])])

    def test_parked_requests_resume_on_their_worker(self):
        parked = Obj(index=1, worker=0, variant=2, stages_run=1)
        batches = plan((0, 120), (1, 900), progress=[parked])
        self.assertEqual(batches, [Batch(0, 2, 1, 3, 0, [1]), Batch(1, 1, 0, 1, 0, [0])])

    def test_busy_workers_get_nothing(self):
        self.assertEqual(plan((0, 900), idle=(False, False)), [])

    def test_a_window_without_requests_gets_no_batches(self):
        self.assertEqual(plan(), [])

    def test_latencies_between_measured_batches_are_rounded_up(self):
        self.assertEqual(interpolate({1: 10, 4: 20}, 8), [10, 14, 17, 20])
        self.assertEqual(interpolate({}, 8), [])


if __name__ == "__main__":
    unittest.main()
