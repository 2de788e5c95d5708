"""One module a stage, thin shells over pldp: ingest, perturb, count, estimate, combine, validate, publish."""
