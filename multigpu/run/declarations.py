from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Parameter, Signature, get_annotations
from math import inf, isfinite
from textwrap import indent, wrap
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from multigpu.errors import UsageError, option, spelled
from multigpu.run.values import (
    ANYTHING,
    NUMBER,
    SWITCH,
    TEXT,
    WHOLE,
    Kind,
    abbreviate,
    choice,
    converted,
)

KINDS: dict[Any, Kind] = {int: WHOLE, float: NUMBER, bool: SWITCH, str: TEXT, Any: ANYTHING}
FLAGS: dict[str, str] = {}  # names on the command line that are not those of the fields
MOST = 1e9  # of what has a limit that matters to users
T = TypeVar("T", bound="Options")
P = ParamSpec("P")
Request = TypeVar("Request", bound="Options")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Option:
    """An option: what its declaration says, and, from `kind` on, what its field and class say.

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
    argument  whether the command line takes it without a name; several, where it may be several
    many      whether it may be given several times on the command line

    kind      kind of its value
    optional  whether that may be None
    name      the field's
    value     its default; MISSING where there is none
    owner     the class that declares it
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
    kind: Kind = ANYTHING
    optional: bool = False
    name: str = ""
    value: Any = None
    owner: type = object

    def checked(self, value: Any) -> Any:
        """Return a value of Python as the program has it. Raises UsageError for a wrong one."""
        if value is None and self.optional:
            return None
        value = converted(self.kind, self.name, value)
        low = self.at_least if self.above is None else self.above
        low, high = -inf if low is None else low, inf if self.at_most is None else self.at_most
        if (low, high) == (-inf, inf):
            return value
        if low <= value <= high and value != self.above and abs(value) != inf:
            return value
        shown = f"{value:g}" if isinstance(value, float) else abbreviate(value)
        must = self.must or self._range(value, low, high)
        raise UsageError(f"{option(self.name)} is {shown}{self.unit}; it must be {must}")

    def words(self, value: Any) -> list[str]:
        """Return how a value that the program has is given on the command line."""
        if self.kind is SWITCH:
            return [flag(self.name, value)]
        if self.many and not isinstance(value, str):
            return [word for each in value for word in (flag(self.name), str(each))]
        texts = [text for text, meant in (self.kind.texts or {}).items() if meant == value]
        values = value if isinstance(value, tuple | list) else [value]
        shown = (f"{each:.15g}" if isinstance(each, float) else str(each) for each in values)
        return [flag(self.name), *(texts[:1] or [",".join(shown)])]

    def _range(self, value: Any, low: float, high: float) -> str:
        """Return in words what a number outside its range must be."""
        if high > MOST and isinstance(value, float) and not isfinite(value):
            return "a finite number"
        if self.above is not None:
            most = "" if high == inf else f", at most {high:g}"
            return "positive" if (low, high) == (0, inf) else f"above {low:g}{most}"
        if high == inf:
            return f"{low:g} or more"
        return f"{low:g} to {high:,}" if isinstance(high, int) else f"{low:g} to {high:g}"

    @property
    def described_default(self) -> str:
        """Return the default in words; empty where there is nothing to say."""
        if self.default is not None:
            return self.default
        if self.kind is SWITCH:
            return flag(self.name) if self.value else ""
        words = "" if self.value in (None, (), MISSING) else _shown(self.value)
        return words + "".join(f"; {m}: {_shown(v)}" for m, v in self.of_model.items())

    @property
    def description(self) -> str:
        """Return its help with its default and its name in R."""
        more = [("default", self.described_default), ("R", self.r)]
        return self.help + "".join(f"  [{k}: {v}]" for k, v in more if v)


def declaration(*args: str, **more: Any) -> dict[str, Option]:
    """Return metadata of a dataclass field that is an option; takes what `Option` takes."""
    return {"option": Option(*args, **more)}


def declare(value: Any, /, *args: str, **more: Any) -> Any:
    """Return a dataclass field with a default that is an option; takes what `Option` takes."""
    return field(default=value, metadata=declaration(*args, **more))


def _shown(value: Any) -> str:
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

    @property
    def unusual(self) -> list[str]:
        """Options that have not their defaults, as on a command line."""
        values = ((each, getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]
        return [
            flag(each.name) if value is True else f"{flag(each.name)} {value}"
            for each, value in values
            if value != each.default
        ]

    def changed(self, **values: Any) -> Self:
        """Return these options with other values."""
        other = replace(self, **values)  # type: ignore[type-var]
        object.__setattr__(other, "given", self.given)
        return other

    def part(self, kind: type[T]) -> T:
        """Return those of these options that a base class has."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(kind)})  # type: ignore[arg-type]


def flag(name: str, on: bool = True) -> str:
    """Return an option's name on the command line."""
    return f"--{'' if on else 'no-'}{FLAGS.get(name, name).replace('_', '-')}"


def declared(kind: type) -> tuple[Option, ...]:
    """Return the options of a class: its own first, then those of its bases."""
    return _declared(kind)


@cache
def _declared(kind: Any) -> tuple[Option, ...]:
    hints = get_type_hints(kind, include_extras=True)
    found: dict[type, list[Option]] = {owner: [] for owner in kind.__mro__}
    for each in fields(kind):
        this = each.metadata.get("option")
        if this is None:
            continue
        if this.flag:
            FLAGS[each.name] = this.flag
        owner = next(x for x in kind.__mro__ if each.name in get_annotations(x))
        value_kind, optional = _kind_of(hints[each.name])
        found[owner].append(
            replace(
                this,
                name=each.name,
                metavar=this.metavar or ("" if this.argument else value_kind.metavar),
                kind=value_kind,
                optional=optional,
                value=each.default,
                group=this.group or owner.group,
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
        return choice({str(value): value for value in get_args(hint)}), optional
    return KINDS[hint], optional


def function_of(
    request: Callable[P, Request],
) -> Callable[[Callable[[Request], Result]], Callable[P, Result]]:
    """Return a decorator: a function of a request becomes one of what the request is made of.

    The function has the parameters of the request's constructor, for type checkers, editors and
    `help()`. Raises TypeError for a keyword that is none, with the one that it resembles.
    """
    kind: Any = request

    def decorate(function: Callable[[Request], Result]) -> Callable[P, Result]:
        signature = _signature(kind, get_type_hints(function)["return"])
        others = {other: each.name for each in declared(kind) for other in each.also}

        @wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> Result:
            given = {others.get(name, name): value for name, value in keywords.items()}
            try:
                bound = signature.bind(*args, **given)
            except TypeError as error:
                hint = _hint(given, [*signature.parameters, *others])
                raise TypeError(f"{function.__name__}() {error}{hint}") from None
            return function(kind.from_given(bound.arguments))

        call.__doc__ = _docstring(function.__doc__ or "", kind)
        call.__signature__ = signature  # type: ignore[attr-defined]
        del call.__wrapped__  # help() would show its signature
        return call

    return decorate


def _signature(kind: Any, result: Any) -> Signature:
    hints = get_type_hints(kind)
    parameters = [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY if each.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in sorted(fields(kind), key=lambda each: bool(each.kw_only))
        if each.init
    ]
    return Signature(parameters, return_annotation=result)


def _hint(given: dict[str, Any], known: list[str]) -> str:
    """Return which keyword the first unknown one resembles; empty if none."""
    unknown = next((name for name in given if name not in known), "")
    alike = get_close_matches(unknown, sorted(known), n=1)
    return f"; did you mean {alike[0]!r}?" if alike else ""


def _docstring(text: str, kind: type[Options]) -> str:
    """Return a docstring with the options of a request in place of the line `{options}`."""
    lines = []
    for each in declared(kind):
        if each.only != "command line":
            lines += [each.name, *wrap(spelled(each.description), 92, initial_indent="    ",
                                       subsequent_indent="    ")]  # fmt: skip
    return text.replace("    {options}", indent("\n".join(lines), "    "))
