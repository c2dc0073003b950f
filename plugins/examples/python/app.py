"""The component: the contract's five functions around the scheduler.

The build generates the module `wit_world` from `wit/`; README.md says how to generate it for an editor.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.scheduling import Description, Dispatch, Events, Plan, WindowFields

from scheduler import Scheduler


# Not a field of the class: each call creates an object of it.
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
            wants=WindowFields(0),
        )

    def configure(self, catalog, settings):
        # An unknown setting is mostly a misspelt name: refuse it.
        unknown = sorted(json.loads(settings))
        if unknown:
            raise Err(f"settings: {unknown[0]}: unknown setting; this policy has none")
        global scheduler
        scheduler = Scheduler(catalog)

    def schedule(self, window):
        batches = scheduler.schedule(window)
        ids = window.requests.id if window.requests else []
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


# Position in a worker's queue.
AT_THE_END = 0xFFFFFFFF
