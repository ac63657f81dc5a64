"""Outputs of a scan: one class an output, formats of rows by name in `registry`."""
