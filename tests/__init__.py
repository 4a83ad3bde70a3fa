"""Makes `python -m tests.oracle...` work from the root of the repository."""
