"""Compiled functions over text in arrays of bytes: lines, records, numbers and columns."""
