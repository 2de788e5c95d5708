"""The inbox of people's messages: what a collector keeps, and how a slot is closed."""
