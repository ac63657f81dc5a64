"""The kinds of jobs: each has its command, its Python function, its plan and its work."""
