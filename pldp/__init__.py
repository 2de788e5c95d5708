"""The mathematics of personalised, multi-level local differential privacy: no files, no database, no scheduler."""

__version__ = "0.3.0.dev0"
