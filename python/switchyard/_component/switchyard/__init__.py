"""The part of the package that policies may use in a component."""

from ._native import Error
from .policy import Catalog, Dispatch, Plan, PythonPolicy, Window

__all__ = ["Catalog", "Dispatch", "Error", "Plan", "PythonPolicy", "Window"]
