"""SQL by stage, one statement a file, the grain on top. `pldp.tasks.query` reads them."""
