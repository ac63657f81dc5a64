"""Docstrings that stand alone: each begins with a verb or a noun."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("multigpu", "kernels", "cluster", "benchmarks", "tests/support")
HEADLESS = """
    also and as at but by for from how if in it its nothing of on only or same so such that their
    then there these they this those to what when where which who with without
"""
MODULES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if not any(parent.is_symlink() for parent in path.parents)
)


def headless(source: str) -> list[str]:
    """Return the first lines of docstrings that do not say what they are about."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first, *_ = (ast.get_docstring(node) or "").splitlines() or [""]
            if first.partition(" ")[0].strip(".,:;").lower() in HEADLESS.split():
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
