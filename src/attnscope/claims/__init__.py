"""What the papers claim, what they printed, and the rules by which measured numbers decide.

Nothing here loads torch: verdicts are read off stored measurements.
"""
