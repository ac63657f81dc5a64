"""Cohorts that are kept: counts of many samples, with which new samples are compared."""
