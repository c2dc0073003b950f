"""The part of the package that policies may use in a component."""

from ._native import Error
from .policy import Catalog, Dispatch, Lane, Plan, PythonPolicy, Route, Window

__all__ = ["Catalog", "Dispatch", "Error", "Lane", "Plan", "PythonPolicy", "Route", "Window"]
