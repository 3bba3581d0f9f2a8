"""An audit: can the attention of a user's own model be trusted as an explanation?

One file per question, each with its ``measure``; the claims (``audit.*``) with their thresholds
stand in `attnscope.recipes.audit.claims` and are never mixed with those of the papers.
"""
