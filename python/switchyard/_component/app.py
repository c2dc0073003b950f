"""The component: the contract's functions around a policy of `switchyard.PythonPolicy`.

`built_policy.py` has the sources of the policy, and `POLICY`.
"""

import json
import traceback

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.scheduling import Description, Dispatch, Events, Lane, Plan, Reason, Route, WindowFields

import built_policy
from switchyard import _native
from switchyard.policy import Catalog, Window

POLICY = built_policy.POLICY
EVENTS = {
    "arrival": Events.ARRIVAL,
    "worker-idle": Events.WORKER_IDLE,
    "completion": Events.COMPLETION,
    "evidence": Events.EVIDENCE,
}
FIELDS = {
    "evidence": WindowFields.EVIDENCE,
    "completions": WindowFields.COMPLETIONS,
    "placed": WindowFields.PLACED,
    "residents": WindowFields.RESIDENTS,
}

# Not fields of the class: each call creates an object of it.
native = schedule = None


def reason(error):
    """The last line of an exception and where it was raised."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (in {where.name}: {where.line})"


def dispatch(batch):
    to_stage = batch.to_stage
    if to_stage is None:
        to_stage = native.to_stage(batch.variant, batch.exit)
    return Dispatch(
        worker=batch.worker,
        variant=batch.variant,
        from_stage=batch.from_stage,
        to_stage=to_stage,
        exit=batch.exit,
        place=batch.place,
        size=len(batch.requests),
    )


def route(made):
    fields = ["worker", "variant", "exit", "weight", "min_batch", "max_batch", "capacity"]
    return Route(made.app, [Lane(**{field: getattr(lane, field) for field in fields}) for lane in made.lanes])


class Scheduling(exports.Scheduling):
    def describe(self):
        on, wants = Events(0), WindowFields(0)
        for event in POLICY.on:
            on |= EVENTS[event]
        for field in POLICY.wants:
            wants |= FIELDS[field]
        return Description(
            name=POLICY.name,
            version="python",
            summary="Built by switchyard.PythonPolicy",
            every=POLICY.every_us,
            when_empty=bool(POLICY.when_empty),
            on=on,
            wants=wants,
        )

    def configure(self, catalog, settings):
        unknown = sorted(json.loads(settings))
        if unknown:
            raise Err(f"settings: {unknown[0]}: unknown setting; a policy of PythonPolicy has none")
        global native, schedule
        native = _native.Catalog(catalog)
        try:
            schedule = POLICY.make(Catalog(native))
        except Exception as error:
            raise Err(reason(error))

    def schedule(self, window):
        try:
            made = schedule(Window(_native.Window(window)))
        except Exception as error:
            raise Err(reason(error))
        plan = Plan([], [], [], [], [], [], None, [])
        if made is None:
            return plan
        for batch in made.dispatches:
            plan.members.extend(batch.requests)
            plan.dispatches.append(dispatch(batch))
        plan.revokes, plan.rejects, plan.answers = made.revokes, made.rejects, made.answers
        plan.routes, plan.wake = [route(each) for each in made.routes], made.wake_us
        plan.reasons = [Reason(position, text) for position, text in made.reasons]
        return plan

    def save(self):
        return b""

    def restore(self, state):
        pass
