"""The page that reports share."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.browser import browse
from support.markup import CONTROLS, ESCAPED, NAMES, read

from multigpu import __version__
from multigpu.report.figures import Figure, axis, literal, name_axis
from multigpu.report.page import Card, Column, Page, Provenance, Section, Table

ROWS = [("b", 10, ""), ("a,c", 9, 0.5), ("d", "", -2)]
RUN = Provenance(command="multigpu cnv 'a b'", date="2026-01-02 03:04 UTC", versions="numpy 2")


def page_of(*names: str) -> Page:
    """Return a page with these names wherever a workload may put one."""
    columns = [Column(name, name) for name in names]
    marks = {"type": "scatter", "x": [1, 2], "y": [2, 1], "line": {"color": "var(--red)"}}
    figures = [
        Figure(data=[{**marks, "name": literal(name)}], layout={"xaxis": axis(literal(name))},
               title=name)
        for name in names
    ]  # fmt: skip
    section = Section(
        title="Everything", text=names[0], items=names, figures=figures,
        table=Table("rows", columns, [names]), facts=[(name, name) for name in names],
    )  # fmt: skip
    return Page(
        title=names[0], method=names[0], inputs=names,
        cards=[Card(name, name, name) for name in names], sections=[section],
        settings=[(name, name) for name in names], provenance=RUN._replace(command=" ".join(names)),
        references=names,
    )  # fmt: skip


def table_page() -> bytes:
    columns = [
        Column("name"), Column("count", is_number=True),
        Column("share", "lower is better", is_number=True),
    ]  # fmt: skip
    table = Table("some", columns, ROWS)
    section = Section(title="Table", table=table)
    return replace(page_of("x"), sections=[section]).html()


def test_page__shows_all_names_letter_by_letter() -> None:
    found = read(page_of(*NAMES).html())
    for name in NAMES:
        assert found.text.count(name) >= 15
    names = [figure["data"][0]["name"] for figure in found.figures]
    assert names == [literal(name) for name in NAMES]
    found = read(page_of(f"a{CONTROLS}", f"b{CONTROLS}").html())
    assert min(found.text.count(f"{letter}{ESCAPED}") for letter in "ab") >= 15


def test_literal__leaves_nothing_that_figures_would_take_for_theirs() -> None:
    assert literal("a<b>&%{x}") == "a&lt;b&gt;&amp;%&#123;x}"
    assert literal("var(--red)") == "var&#40;--red)"
    assert literal("sample 1") == "sample 1"


def test_name_axis__cuts_long_names_and_leaves_short_ones_to_plotly() -> None:
    assert "ticktext" not in name_axis("sample", ["a", "b"])
    cut = name_axis("sample", ["a", "<" + 99 * "x"])
    assert cut["ticktext"] == ["a", "&lt;" + 11 * "x" + "…" + 5 * "x"]


def test_header__says_how_it_was_made_and_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/bin/multigpu", "cnv", "a b"])
    page = page_of("x")
    text = read(replace(page, provenance=RUN).html()).text
    for said in (RUN.command, RUN.date, RUN.versions, f"multigpu {__version__}"):
        assert said in text
    alone = replace(page, provenance=None).html()
    assert alone == replace(page, provenance=None).html()
    assert b"<dt>Command</dt>" not in alone
    assert b"http" not in alone.split(b"<script>", 1)[0]
    of_this_run = Provenance.of_this_run()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", of_this_run.date)
    assert of_this_run.command == RUN.command
    assert "Python 3." in of_this_run.versions


def test_inputs__of_several_are_listed() -> None:
    page = page_of("x")
    assert "<dt>Input</dt><dd>x</dd>" in page.html().decode()
    several = replace(page, inputs=["a<b.bam", "c.bam"]).html().decode()
    assert "<summary>2 files</summary>" in several
    assert "<li>a&lt;b.bam</li>\n<li>c.bam</li>" in several


CLICK = "document.querySelectorAll('th button')[{}].click();"
SEARCH = """const field = document.querySelector("input"); field.value = "C";
field.dispatchEvent(new Event("input"));"""
SAVE = """URL.createObjectURL = (blob) => {
  blob.text().then((text) => { document.title = text; });
  return "#";
};
document.querySelector(".tools button").click();"""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(("script", "wanted"), [
    (CLICK.format(0), ["a,c", "b", "d"]),
    (CLICK.format(0) * 2, ["d", "b", "a,c"]),
    (CLICK.format(1), ["a,c", "b", "d"]),  # 9 before 10, and nothing last
    (CLICK.format(1) * 2, ["b", "a,c", "d"]),
    (CLICK.format(2), ["d", "a,c", "b"]),
])  # fmt: skip
def test_table__is_sorted_by_any_column(tmp_path: Path, script: str, wanted: list[str]) -> None:
    document, said = browse(table_page(), tmp_path, script)
    assert said == []
    assert re.findall(r'<tr><td data-name="name">(.*?)</td>', document) == wanted


@pytest.mark.slow
@pytest.mark.process
def test_table__is_searched_and_saved_as_it_is_shown(tmp_path: Path) -> None:
    document, said = browse(table_page(), tmp_path, SEARCH + SAVE)
    assert said == []
    assert "<output>Rows: 1 of 3</output>" in document
    assert document.count('<tr hidden=""') == 2
    assert '<title>name,count,share\n"a,c",9,0.5\n</title>' in document


@pytest.mark.slow
@pytest.mark.process
def test_figures__are_drawn_in_the_colours_of_the_style_sheet(tmp_path: Path) -> None:
    document, said = browse(page_of("one", "two").html(), tmp_path)
    assert said == []
    assert len(re.findall(r'class="figure js-plotly-plot"', document)) == 1
    assert "rgb(192, 57, 43)" in document
    assert "var(--red)" not in document.partition("<script")[0]
    assert browse(b"<body></body>", tmp_path, "undefinedFunction()")[1]


@pytest.mark.slow
@pytest.mark.process
def test_figures__share_a_layout_and_places(tmp_path: Path) -> None:
    marks, layout = {"type": "scatter", "mode": "markers+text"}, {"xaxis": axis("shared")}
    common = {"x": [1, 2], "text": ["here", "there"]}
    figures = [
        Figure(data=[{**marks, "y": [k, k]}], layout=layout, common=common, title=f"{k}")
        for k in range(2)
    ]
    page = replace(page_of("x"), sections=[Section(title="Some", figures=figures)]).html()
    assert page.count(b'"there"') == page.count(b'"shared"') == 1
    choose = """const choice = document.querySelector("select"); choice.selectedIndex = 1;
    choice.dispatchEvent(new Event("change"));"""
    document, said = browse(page, tmp_path, choose)
    assert said == []
    shown = document.partition("<script")[0]
    assert "there</text>" in shown
    assert "shared</text>" in shown


def test_page__shows_no_password_of_a_url() -> None:
    url = "https://me:pa55word@host/a@b.fa.gz"
    shared = replace(page_of("x"), inputs=[url], provenance=RUN._replace(command=f"scan {url}"))
    page = shared.html()
    assert b"pa55word" not in page
    assert page.count("https://…@host/a@b.fa.gz".encode()) == 2
