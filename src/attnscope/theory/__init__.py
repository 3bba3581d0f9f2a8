"""Closed forms: what the papers' equations say before anything is trained."""
