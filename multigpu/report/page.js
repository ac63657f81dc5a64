"use strict";
const page = document.documentElement;
const PRINTED = 640; // pixels of a figure on A4

// ---- figures: drawn again where light becomes dark, or the page is printed ----

function inTheme(text) {
  const style = getComputedStyle(page);
  return JSON.parse(text, (key, value) => {
    const colour = typeof value === "string" && /^var\((--[a-z-]+)\)$/.exec(value);
    return colour ? style.getPropertyValue(colour[1]).trim() : value;
  });
}

function template() {
  const axis = {color: "var(--soft)", gridcolor: "var(--line)", zerolinecolor: "var(--line)",
                linecolor: "var(--line)", automargin: true, title: {standoff: 8}};
  const place = {...axis, backgroundcolor: "var(--paper)"};
  return inTheme(JSON.stringify({layout: {
    paper_bgcolor: "var(--paper)", plot_bgcolor: "var(--paper)", xaxis: axis, yaxis: axis,
    font: {family: "system-ui, sans-serif", size: 12, color: "var(--ink)"},
    legend: {orientation: "h", y: 1.02, yanchor: "bottom"}, hovermode: "closest",
    margin: {l: 10, r: 10, t: 10, b: 10}, scene: {xaxis: place, yaxis: place, zaxis: place},
  }}));
}

const figures = JSON.parse(document.getElementById("figures").textContent);

// A figure with what it shares with others: the first of them has it, and the others its name.
function whole(name) {
  const found = {...figures[name]};
  for (const part of ["layout", "common"]) found[part] = figures[found[part]]?.[part] ?? found[part];
  return inTheme(JSON.stringify(found));
}

function draw(chosen) {
  const look = template();
  for (const place of document.querySelectorAll(".figure")) {
    const choice = document.querySelector(`[data-of="${place.id}"]`);
    if (chosen && choice !== chosen) continue;
    const {data, layout, common, height} = whole(choice ? choice.value : place.id);
    for (const trace of data) if (!trace.x) Object.assign(trace, common);
    Object.assign(layout, {height, template: look});
    const isPrinted = page.classList.contains("printing");
    if (layout.scene) {
      // A view in space is drawn later than the page is printed.
      place.style.zoom = isPrinted ? PRINTED / place.clientWidth : 1;
    } else {
      // A finger that drags scrolls the page.
      layout.dragmode = innerWidth < 600 ? false : "zoom";
      if (isPrinted) layout.width = PRINTED;
    }
    Plotly.react(place, data, layout, {responsive: true, displaylogo: false});
  }
  dispatchEvent(new Event("themed")); // for scenes
}

function print(is) {
  page.classList.toggle("printing", is);
  draw();
}

for (const choice of document.querySelectorAll("[data-of]")) {
  choice.addEventListener("change", () => draw(choice));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
draw();

// ---- tables: sorted by a click on a column, searched, saved as they are shown ----

const words = new Intl.Collator(undefined, {numeric: true});

function compare(one, other, isNumber) {
  if (!one || !other) return !one - !other; // empty ones last
  return isNumber ? one - other : words.compare(one, other);
}

function prepare(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], rows = [...body.rows];
  const names = heads.map((head) => head.querySelector("button").textContent);
  const [search, shown, save] = table.previousElementSibling.elements;
  const text = (row, column) => row.cells[column].textContent;
  for (const row of rows) names.forEach((name, k) => { row.cells[k].dataset.name = name; });
  heads.forEach((head, k) => head.querySelector("button").addEventListener("click", () => {
    const down = head.ariaSort === "ascending", isNumber = head.classList.contains("number");
    for (const each of heads) each.ariaSort = null;
    head.ariaSort = down ? "descending" : "ascending";
    rows.sort((a, b) => (down && text(a, k) && text(b, k) ? -1 : 1)
                        * compare(text(a, k), text(b, k), isNumber));
    body.append(...rows);
  }));
  search.form.addEventListener("submit", (event) => event.preventDefault());
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    const left = rows.filter((row) => !row.hidden).length;
    shown.textContent = left === rows.length ? `Rows: ${left}` : `Rows: ${left} of ${rows.length}`;
  });
  save.addEventListener("click", () => {
    const kept = rows.filter((row) => !row.hidden);
    const lines = [names, ...kept.map((row) => names.map((_, k) => text(row, k)))];
    const quoted = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    const csv = lines.map((line) => line.map(quoted).join(",") + "\n").join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv], {type: "text/csv"}));
    link.download = save.dataset.file;
    link.click();
  });
}

function fit() {
  for (const table of document.querySelectorAll("table")) {
    table.classList.remove("stacked");
    table.classList.toggle("stacked", table.scrollWidth > table.parentElement.clientWidth);
  }
}

document.querySelectorAll("table").forEach(prepare);
addEventListener("resize", fit);
fit();
