"""Palette and chart pieces that every recipe draws with.

`palette` holds the colours and their meanings, `charts` the pieces, `save` the writing of SVG and
PNG. Nothing is imported here, so that asking for a colour loads neither altair nor torch.
"""
