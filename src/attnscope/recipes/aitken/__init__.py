"""Understanding How Encoder-Decoder Architectures Attend (Aitken et al. 2021)."""
