"""Tells a coding agent that it is stuck issuing the same tool call."""

__version__ = "0.1.0"
