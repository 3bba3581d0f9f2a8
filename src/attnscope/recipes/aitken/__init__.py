"""Encoder-decoder networks, with and without recurrence (Aitken et al. 2021).

`units` and `translation` are the networks; `attnscope.analysis.measures`, and for eSCAN
`subphrases`, name what is measured of one of them, so that the numbers of all seeds have the same
keys; `claims` and `section_claims` decide.
"""
