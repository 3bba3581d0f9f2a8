"""The pieces that recipes of all papers are put together from.

`lab` trains units, `corpora` opens what they are trained on, `sheet` turns numbers into
measurements next to the published ones, `plots` draws measurements and pictures.
"""
