"""Docstrings that stand alone: each begins with a verb or a noun."""

import ast
from collections.abc import Iterator

from support.sources import FOLDERS, ROOT, modules

HEADLESS = """
    also and as at but by for from how if in it its nothing of on only or same so such that their
    then there these they this those to what when where which who with without
"""
MODULES = [*modules(*FOLDERS, "benchmarks", "tests/support")]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all statements in it; no definition is within an expression."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from statements(child)


def headless(source: str) -> list[str]:
    """Return the first lines of docstrings that do not say what they are about."""
    words, found = set(HEADLESS.split()), []
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first, *_ = (ast.get_docstring(node) or "").splitlines() or [""]
            if first.partition(" ")[0].strip(".,:;").lower() in words:
                found.append(first)
    return found


def test_docstrings__begin_with_a_verb_or_a_noun() -> None:
    found = {path.relative_to(ROOT): headless(path.read_text(encoding="utf-8")) for path in MODULES}
    assert len(MODULES) > 100
    assert {str(path): lines for path, lines in found.items() if lines} == {}


def test_headless__finds_them_at_every_level() -> None:
    source = '"""Of it."""\nclass A:\n    """Those."""\n    def b(self):\n        """That."""'
    assert headless(source) == ["Of it.", "Those.", "That."]
    assert headless('"""Return the sum."""\ndef a():\n    pass') == []
