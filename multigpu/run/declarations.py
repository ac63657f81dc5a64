"""Options, each declared once, as a field of a dataclass.

    @dataclass(frozen=True, kw_only=True)
    class Search(Options, group="Search"):
        min_score: float | None = declare(None, "Drop rows with a lower score.", at_most=93)

From this come the option `--min-score` of the command line, the keyword `min_score` of the Python
function with its line in the docstring, the check of its value, and its entry in docs/options.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, replace
from functools import cache
from inspect import get_annotations
from math import inf, isfinite
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from multigpu.errors import UsageError, option
from multigpu.run.values import (
    Anything,
    Choice,
    Kind,
    Number,
    Switch,
    Text,
    Whole,
    abbreviate,
    converted,
)

KINDS: dict[Any, Kind] = {
    int: Whole(), float: Number(), bool: Switch(), str: Text(), Any: Anything()
}  # fmt: skip
FLAGS: dict[str, str] = {}  # names on the command line that are not those of the fields
MOST = 1e9  # of what has a limit that matters to users
T = TypeVar("T", bound="Options")


@dataclass(frozen=True, slots=True)
class Option:
    """Declaration of an option, beside its name, type and default, which are those of the field.

    help      what it does, a sentence
    metavar   name of its value in the help
    example   a value, for messages
    unit      of its value, in messages
    above, at_least, at_most  its range
    must      its range in words, where they say it better
    default   its default in words; "" for none
    of_model  its default for other values of `model`
    group     heading in the help; empty: that of its class
    short     its letter on the command line
    flag      its name on the command line, where it is not the field's
    also      other names that Python takes
    r         its name in R
    only      the door that has it: the command line or Python; empty: both
    required  whether the command line wants it
    argument  whether the command line takes it without a name, any number of times
    many      whether it may be given several times on the command line
    """

    help: str
    metavar: str = ""
    _: KW_ONLY
    example: str = ""
    unit: str = ""
    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    must: str = ""
    default: str | None = None
    of_model: Mapping[str, object] = field(default_factory=dict)
    group: str = ""
    short: str = ""
    flag: str = ""
    also: tuple[str, ...] = ()
    r: str = ""
    only: Literal["", "command line", "Python"] = ""
    required: bool = False
    argument: bool = False
    many: bool = False


P = ParamSpec("P")


def _as_metadata(kind: Callable[P, Option]) -> Callable[P, dict[str, Option]]:
    return lambda *args, **more: {"option": kind(*args, **more)}


def _with_default(make: Callable[P, dict[str, Option]]) -> Callable[Concatenate[Any, P], Any]:
    def declared_field(default: Any, /, *args: P.args, **more: P.kwargs) -> Any:
        return field(default=default, metadata=make(*args, **more))

    return declared_field


# Metadata of a dataclass field; and a field with a default. Both take what `Option` takes.
declaration = _as_metadata(Option)
declare = _with_default(declaration)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Option of a class: its declaration, and what the field says.

    name         the field's
    optional     whether it may be None
    owner        the class that declares it
    """

    name: str
    option: Option
    kind: Kind
    optional: bool
    default: Any
    group: str
    owner: type

    @property
    def is_switch(self) -> bool:
        """Return whether the command line has it as --x and, where it is on, --no-x."""
        return isinstance(self.kind, Switch)

    @property
    def metavar(self) -> str:
        """Name of its value in the help."""
        return (
            self.kind.metavar
            if isinstance(self.kind, Choice)
            else (self.option.metavar or self.kind.metavar)
        )

    @property
    def flag(self) -> str:
        """Return its name on the command line."""
        return flag(self.name)

    def checked(self, value: Any) -> Any:
        """Return a value of Python as the program has it. Raises UsageError for a wrong one."""
        if value is None and self.optional:
            return None
        value = converted(self.kind, self.name, value)
        if self._lies_in_range(value):
            return value
        shown = f"{value:g}" if isinstance(value, float) else abbreviate(value)
        problem = f"{shown}{self.option.unit}; it must be {self._range(value)}"
        raise UsageError(f"{option(self.name)} is {problem}")

    def _lies_in_range(self, value: Any) -> bool:
        low, high = self._limits
        if low == -inf and high == inf:
            return True
        above = self.option.above
        return bool(low <= value <= high and value != above and abs(value) != inf)

    @property
    def _limits(self) -> tuple[float, float]:
        this = self.option
        low = this.at_least if this.above is None else this.above
        return -inf if low is None else low, inf if this.at_most is None else this.at_most

    def _range(self, value: Any) -> str:
        """Return in words what a number outside its range must be."""
        this, (low, high) = self.option, self._limits
        if this.must:
            return this.must
        if high > MOST and isinstance(value, float) and not isfinite(value):
            return "a finite number"
        if this.above is not None:
            most = "" if high == inf else f", at most {high:g}"
            return "positive" if (low, high) == (0, inf) else f"above {low:g}{most}"
        if high == inf:
            return f"{low:g} or more"
        return f"{low:g} to {high:,}" if isinstance(high, int) else f"{low:g} to {high:g}"

    @property
    def described_default(self) -> str:
        """Return the default in words; empty where there is nothing to say."""
        words = self.option.default
        if words is None:
            words = "" if self.default in (None, (), MISSING) else _shown(self)
            words += "".join(f"; {m}: {_value(v)}" for m, v in self.option.of_model.items())
        return words

    @property
    def description(self) -> str:
        """Return its help with its default and its name in R."""
        more = [("default", self.described_default), ("R", self.option.r)]
        return self.option.help + "".join(f"  [{k}: {v}]" for k, v in more if v)


def _shown(each: Declared) -> str:
    if each.is_switch:
        return each.flag if each.default else ""
    texts = each.kind.texts if isinstance(each.kind, Choice) else {}
    return next((t for t, value in texts.items() if value == each.default), _value(each.default))


def _value(value: Any) -> str:
    """Return a value for the help; a long list by its ends."""
    if isinstance(value, tuple):
        return f"{value[0]},{value[1]},…,{value[-1]}"
    return f"{value:g}" if isinstance(value, float) else str(value)


class Options:
    """Base of dataclasses whose fields are declared options; it converts and checks each.

    given  names of the options that the user gave; empty for objects made in another way

    Raises UsageError for values that cannot be.
    """

    group: ClassVar[str]
    given: frozenset[str] = frozenset()

    def __init_subclass__(cls, group: str = "") -> None:
        if group:
            cls.group = group

    @classmethod
    def from_given(cls, given: Mapping[str, Any]) -> Self:
        """Return the options for those that a user gave; the others have their defaults."""
        options = cls(**cls.completed(given))
        names = frozenset(name for name, value in given.items() if value is not None)
        object.__setattr__(options, "given", names)
        return options

    @classmethod
    def completed(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values for what a user gave, beside which the fields' defaults hold."""
        return dict(given)

    def __post_init__(self) -> None:
        for each in declared(type(self)):
            object.__setattr__(self, each.name, each.checked(getattr(self, each.name)))
        self.check()

    def check(self) -> None:
        """Raise UsageError for values that cannot be together; each class calls the next."""

    def changed(self, **values: Any) -> Self:
        """Return these options with other values."""
        other = replace(self, **values)  # type: ignore[type-var]
        object.__setattr__(other, "given", self.given)
        return other

    def part(self, kind: type[T]) -> T:
        """Return those of these options that a base class has."""
        part = kind(**{each.name: getattr(self, each.name) for each in fields(kind)})  # type: ignore[arg-type]
        object.__setattr__(part, "given", self.given)
        return part


def flag(name: str, on: bool = True) -> str:
    """Return an option's name on the command line."""
    return f"--{'' if on else 'no-'}{FLAGS.get(name, name).replace('_', '-')}"


def declared(kind: type) -> tuple[Declared, ...]:
    """Return the options of a class: its own first, then those of its bases."""
    return _declared(kind)


@cache
def _declared(kind: Any) -> tuple[Declared, ...]:
    hints = get_type_hints(kind, include_extras=True)
    found: dict[type, list[Declared]] = {owner: [] for owner in kind.__mro__}
    for each in fields(kind):
        option = each.metadata.get("option")
        if option is None:
            continue
        if option.flag:
            FLAGS[each.name] = option.flag
        owner = next(x for x in kind.__mro__ if each.name in get_annotations(x))
        value_kind, optional = _kind_of(hints[each.name])
        found[owner].append(
            Declared(
                name=each.name,
                option=option,
                kind=value_kind,
                optional=optional,
                default=each.default,
                group=option.group or owner.group,
                owner=owner,
            )
        )
    return tuple(one for those in found.values() for one in those)


def _kind_of(hint: Any) -> tuple[Kind, bool]:
    """Return the kind of value of a type, and whether None is one, too."""
    kinds = getattr(hint, "__metadata__", ())
    hint = hint.__origin__ if kinds else hint
    several = get_args(hint) if get_origin(hint) in (Union, UnionType) else ()
    optional = NoneType in several or hint is Any
    others = [each for each in several if each is not NoneType]
    if kinds:
        return kinds[0], optional
    if others:
        return _kind_of(others[0])[0], optional
    if get_origin(hint) is Literal:
        return Choice({str(value): value for value in get_args(hint)}), optional
    return KINDS[hint], optional
