"""The stages of a release of aggregates towards providers (`kind: aggregates`), one module each."""
