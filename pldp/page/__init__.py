"""What a page says, as plain values: sections of sentences, tables and charts. `pldp.tasks.page` makes HTML of them."""
