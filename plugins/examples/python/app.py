"""The component: the contract's five calls, and between them the scheduler.

The module `wit_world` is made from `wit/` when the component is built; for an editor that
completes names, make it by hand: see README.md.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.scheduling import Description, Dispatch, Events, Plan, Sights

from scheduler import Scheduler


# Not in the class below: an object of it is made for every call.
scheduler = None


class Scheduling(exports.Scheduling):
    def describe(self):
        return Description(
            name="earliest-deadline",
            version="0.1.0",
            summary="earliest deadline first, the most accurate variant that is in time",
            every=None,
            when_empty=False,
            on=Events.ARRIVAL | Events.WORKER_IDLE,
            wants=Sights(0),
        )

    def configure(self, catalog, settings):
        # A field that nobody reads is mostly a typing error: refused, not ignored.
        unknown = sorted(json.loads(settings))
        if unknown:
            raise Err(f"settings: {unknown[0]}: there is no such field")
        global scheduler
        scheduler = Scheduler(catalog)

    def schedule(self, window):
        batches = scheduler.schedule(window)
        ids = window.requests.id
        dispatches = [
            Dispatch(
                worker=batch.worker,
                variant=batch.variant,
                from_stage=batch.from_stage,
                to_stage=batch.to_stage,
                exit=batch.exit,
                place=AT_THE_END,
                size=len(batch.members),
            )
            for batch in batches
        ]
        members = [ids[position] for batch in batches for position in batch.members]
        return Plan(
            dispatches=dispatches,
            members=members,
            revokes=[],
            rejects=[],
            answers=[],
            routes=[],
            wake=None,
            reasons=[],
        )

    def save(self):
        return b""

    def restore(self, state):
        pass


# Place in a worker's queue.
AT_THE_END = 0xFFFFFFFF
