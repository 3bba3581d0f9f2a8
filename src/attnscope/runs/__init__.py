"""Workspaces: units and their files, locks, atomic writes, results. Nothing here imports torch."""
