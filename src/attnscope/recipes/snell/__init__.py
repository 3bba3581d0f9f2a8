"""Approximating How Single Head Attention Learns (Snell, Zhong, Klein, Steinhardt 2021)."""
