"""Numbers from scores and states: agreement, rank correlation, intervals, learning curves.

Importing this package loads no torch; only the modules that work on tensors do.
"""
