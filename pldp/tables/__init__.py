"""The published tables, declared once: DDL, views, frames, what is shown and the reference page follow from here."""
