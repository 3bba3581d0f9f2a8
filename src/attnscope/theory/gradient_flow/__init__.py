"""Gradient flow of polarity and attention scores (sunlu Eq. 19, 27 and their other forms)."""
