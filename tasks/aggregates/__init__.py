"""What only releases of aggregates (`kind: aggregates`) read and hand out: the catalogue, and a file a provider."""
