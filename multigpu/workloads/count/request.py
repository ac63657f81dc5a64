"""Request for a count, by the command line or by Python."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from multigpu.run.declarations import declaration
from multigpu.run.options import Request
from multigpu.run.values import Paths, texts_of
from multigpu.workloads.count.options import CountOptions

if TYPE_CHECKING:
    from multigpu.formats.tables.file_lists import ListedFile


@dataclass(frozen=True)
class CountRequest(CountOptions, Request, group="Input"):
    """Everything that a count is asked for; GPUs are not used."""

    files: Paths = field(metadata=declaration(
        "BAM or CRAM files, one a sample, all with the same references; or directories, lists and"
        " sample sheets of them.",
        "ALIGNMENTS...", argument=True,
    ))  # fmt: skip

    @property
    def options(self) -> CountOptions:
        """Options that decide the result; names of a sample sheet are there."""
        options, names = self.part(CountOptions), [file.name for file in self.listed if file.name]
        return (
            replace(options, sample_names=tuple(names))
            if names and not self.sample_names
            else options
        )

    @cached_property
    def listed(self) -> "list[ListedFile]":
        """Files, with what sample sheets say of them. Raises UsageError and InputError."""
        from multigpu.formats.tables.file_lists import list_files

        return list_files(texts_of(self.files, "files"))

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self.listed]
