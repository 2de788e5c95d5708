"""The gates, as sentences."""
