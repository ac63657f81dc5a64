"""Stages through which a worker sends a chromosome: normalize, model, segment, call."""
