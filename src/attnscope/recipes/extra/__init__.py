"""Recipes that go beyond the four papers: they measure, and decide no claim of a paper."""
