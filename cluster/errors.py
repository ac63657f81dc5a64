"""Failures a user can act on, and the exit status each stands for."""


class Failure(Exception):
    """The run failed for a reason outside the input: a device, a worker, a file system."""

    exit_status = 1


class UsageError(Failure):
    """The user's mistake: an option, a file, a device that is not there. Exit status 2."""

    exit_status = 2
