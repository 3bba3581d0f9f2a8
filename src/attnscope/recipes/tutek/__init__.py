"""Staying True to Your Word: (How) Can Attention Become Explanation? (Tutek, Šnajder 2020)."""
