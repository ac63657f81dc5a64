"""Symbols of the elements, as files of molecules write them."""

from collections.abc import Sequence
from functools import lru_cache

_SYMBOLS = (  # by atomic number
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br"
    " Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho"
    " Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es"
    " Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"
)
ELEMENTS = _SYMBOLS.split()
HEAVY_HYDROGEN = {"D", "T"}
FEW_WORDS = 4096  # elements and types, looked up again and again


@lru_cache(FEW_WORDS)
def element_of(word: str) -> str:
    """Return a symbol with its usual capitals; for an atomic number its element."""
    if word.isascii() and word.isdigit() and 0 < int(word) <= len(ELEMENTS):
        return ELEMENTS[int(word) - 1]
    return word[:1].upper() + word[1:].lower()


@lru_cache(FEW_WORDS)
def is_element(symbol: str) -> bool:
    """Whether a symbol is an element; dummy atoms and pseudo atoms (`Du`, `G0`) are not."""
    return symbol.capitalize() in ELEMENTS or symbol in HEAVY_HYDROGEN


def is_heavy(symbol: str) -> bool:
    """Whether a symbol is an element other than hydrogen."""
    return is_element(symbol) and symbol not in ("H", *HEAVY_HYDROGEN)


def without_isotopes(symbols: Sequence[str]) -> list[str]:
    """Return the symbols with H for D and T."""
    return ["H" if symbol in HEAVY_HYDROGEN else symbol for symbol in symbols]
