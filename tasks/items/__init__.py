"""The stages of a release of frequent items (`kind: items`), one module each."""
