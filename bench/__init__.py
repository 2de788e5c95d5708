"""Benchmarks: every figure is a ratio measured in one run, because absolute speeds move with the machine."""
