"""The pieces that recipes of all papers are put together from.

`lab` trains units, `corpora` opens their corpora, `sheet` turns numbers into
measurements next to the published ones, `plots` draws measurements and pictures.
"""
