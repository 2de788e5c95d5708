"""SQL by stage, one statement a file, the grain on top. `tasks.query` reads them."""
