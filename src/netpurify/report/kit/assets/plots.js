"use strict";
// Drawings are whole without this; it only tells the numbers of the marker that is nearest to the pointer. They are
// those of the table below the drawing, in which every line knows its rows.
const REACH = 20; // pixels

function markersOf(svg, rows) {
  const found = [];
  for (const line of svg.querySelectorAll("[data-rows]")) {
    const [start, count] = line.dataset.rows.split("-").map(Number);
    const own = [...rows].slice(start, start + count).filter((row) => Number.isFinite(Number(row.cells[3].textContent)));
    const uses = line.querySelectorAll("use");
    if (uses.length !== own.length) continue; // a marker lies outside of the drawing: say nothing rather than guess
    uses.forEach((use, place) => found.push({ x: Number(use.getAttribute("x")), y: Number(use.getAttribute("y")), row: own[place] }));
  }
  return found;
}

function nearest(markers, svg, event) {
  const matrix = svg.getScreenCTM();
  let best = null;
  for (const marker of markers) {
    const at = new DOMPoint(marker.x, marker.y).matrixTransform(matrix);
    const far = Math.hypot(at.x - event.clientX, at.y - event.clientY);
    if (far <= REACH && (best === null || far < best.far)) best = { far, at, row: marker.row };
  }
  return best;
}

function tell(tip, figure, found) {
  const [panel, label, x, median, low, high] = [...found.row.cells].map((cell) => cell.textContent);
  tip.replaceChildren(document.createElement("b"), document.createElement("br"), document.createElement("span"));
  tip.firstChild.textContent = `${label} (${panel})`;
  tip.lastChild.textContent = `x = ${x}: median ${median}, quartiles ${low} to ${high}`;
  tip.hidden = false;
  const frame = figure.getBoundingClientRect();
  const left = Math.max(0, Math.min(found.at.x - frame.left + 12, frame.width - tip.offsetWidth));
  tip.style.left = `${left}px`;
  tip.style.top = `${found.at.y - frame.top + 14}px`;
}

for (const figure of document.querySelectorAll("figure.live")) {
  const table = figure.nextElementSibling?.querySelector("table.numbers");
  if (!table) continue;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the table says the same to those who do not point
  figure.append(tip);
  for (const svg of figure.querySelectorAll("svg")) {
    let markers = null;
    svg.addEventListener("pointermove", (event) => {
      markers ??= markersOf(svg, table.tBodies[0].rows);
      const found = nearest(markers, svg, event);
      if (found) tell(tip, figure, found);
      else tip.hidden = true;
    });
    svg.addEventListener("pointerleave", () => (tip.hidden = true));
  }
}
