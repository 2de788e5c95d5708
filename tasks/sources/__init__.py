"""Where raw rows come from: one module per kind of source, one line each in the registry."""
