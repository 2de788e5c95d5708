"""What runs: the release, the evaluation, and the command line. A flow reads as the list of its stages."""
