"""Reads of alignment files counted in regions, as cn.MOPS counts them.

`types` has what goes in; `reference` is the plain count, `cpu` the one that runs.
"""
