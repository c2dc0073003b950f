"""Simulations of inference schedulers, with the results of the command `switchyard simulate`.

    import switchyard

    result = switchyard.simulate(switchyard.reference_profile(), "poisson:400", ["fcfs", "sneakpeek"], seeds=3)
    result.summary()["sneakpeek"]["violation_ratio"]["mean"]
    result.requests().to_pandas()
"""

from . import traces
from ._columns import Columns
from ._native import CompiledPolicies, Error, __version__
from ._result import Result
from ._simulate import Policy, reference_profile, simulate
from .files import Profile, Recording, read_profile, read_recording
from .policy import Lane, Plan, PythonPolicy
from .stepped import Stepped
from .traces import Trace

__all__ = [
    "Columns",
    "CompiledPolicies",
    "Error",
    "Lane",
    "Plan",
    "Policy",
    "Profile",
    "PythonPolicy",
    "Recording",
    "Result",
    "Stepped",
    "Trace",
    "__version__",
    "read_profile",
    "read_recording",
    "reference_profile",
    "simulate",
    "traces",
]
