"""The papers' experiments as pure functions: arrays in, points out."""
