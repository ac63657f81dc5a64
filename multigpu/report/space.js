"use strict";
// Molecules in space: a viewer for each scene of the page, with a box to tick for all that it has.
{
const scenes = JSON.parse(document.getElementById("scenes").textContent);

function atomsOf({elements, positions, bonds, labels}) {
  const atoms = elements.map((elem, k) => ({
    elem, x: positions[k][0], y: positions[k][1], z: positions[k][2], bonds: [], bondOrder: [],
    properties: {label: labels[k] || elem},
  }));
  for (const [a, b, order] of bonds) for (const [one, other] of [[a, b], [b, a]]) {
    atoms[one].bonds.push(other);
    atoms[one].bondOrder.push(order < 4 ? order : 1); // aromatic ones, and those of unknown order
  }
  return atoms;
}

function volumeOf({size: [x, y, z], origin, spacing, bits}) {
  const bytes = Uint8Array.from(atob(bits), (letter) => letter.charCodeAt(0));
  const data = Float32Array.from({length: x * y * z}, (_, k) => bytes[k >> 3] >> (k & 7) & 1);
  const vector = ([x, y, z]) => ({x, y, z});
  return {data, size: {x, y, z}, origin: vector(origin), unit: vector(spacing)};
}

function show(place, scene) {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const viewer = $3Dmol.createViewer(place, {backgroundColor: colour("--paper")});
  const boxes = place.parentElement.querySelectorAll("input"), framed = [];
  // What draws each part as its box says.
  const parts = scene.map((part, k) => {
    if (part.bits) {
      let surface = null;
      return () => {
        if (surface) viewer.removeShape(surface);
        surface = boxes[k].checked && viewer.addIsosurface(
          volumeOf(part), {isoval: 0.5, smoothness: 4, opacity: 0.3, color: colour("--brand")});
      };
    }
    const model = viewer.addModel();
    model.addAtoms(atomsOf(part));
    if (!part.is_thin) framed.push(model);
    model.setStyle({}, part.is_thin ? {stick: {radius: 0.045, colorscheme: "greyCarbon"}}
                                    : {stick: {radius: 0.13}, sphere: {scale: 0.17}});
    return () => model[boxes[k].checked ? "show" : "hide"]();
  });
  viewer.zoomTo({model: framed});
  boxes.forEach((box, k) => box.addEventListener("change", () => { parts[k](); viewer.render(); }));
  let label = null;
  const name = (atom) => {
    label ??= viewer.addLabel(atom.properties.label, {position: atom, fontSize: 13});
  };
  const unname = () => { viewer.removeLabel(label); label = null; };
  viewer.setHoverable({}, true, name, unname);
  const draw = () => {
    viewer.setBackgroundColor(colour("--paper"));
    for (const part of parts) part();
    viewer.render();
  };
  draw();
  addEventListener("themed", draw);
}

for (const place of document.querySelectorAll(".scene > div")) {
  try {
    show(place, scenes[place.id]);
  } catch (error) {
    place.textContent = `This browser cannot show molecules in space: ${error}`;
  }
}
}
