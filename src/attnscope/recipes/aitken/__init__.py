"""Encoder-decoder networks, with and without recurrence (Aitken et al. 2021).

`units` and `translation` are the networks; `attention`, `components`, `terms` and `subphrases` name
what is measured of one of them (an `attnscope.analysis.network.Network`), so that the numbers of
all seeds have the same keys; `pictures` shows one; `claims` and `section_claims` decide.
"""
