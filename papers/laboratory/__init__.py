"""Around the papers' experiments: data sets, printed facts, what was computed, and the pages that show both."""
