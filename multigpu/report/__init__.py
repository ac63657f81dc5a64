"""Reports: one page for a browser, of which a workload gives the contents alone."""
