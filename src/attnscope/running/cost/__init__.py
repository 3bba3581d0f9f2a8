"""Time that a run takes on this machine: its units, timed for a few steps, and measuring."""
