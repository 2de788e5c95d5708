"""Means, histograms and quantiles of numbers with declared bounds (docs/numeric.md derives all of it)."""
