"""Compiled functions over text in arrays of bytes: lines, records, numbers and columns."""

LONGEST_NAME = 4096  # bytes: each row of a table has the names that it is about
