"""What a scan writes: one class an output, formats of rows by name in `registry`."""
