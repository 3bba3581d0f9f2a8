"""Understanding Attention for Text Classification (Sun, Lu 2020)."""
