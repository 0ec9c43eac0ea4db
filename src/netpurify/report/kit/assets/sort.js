"use strict";
// Tables are whole without this; it only lets their columns be sorted and the altered weights be searched.
const collator = new Intl.Collator("en", { numeric: true });
const INFINITE = { inf: Infinity, "-inf": -Infinity };

function key(cell) {
  const text = cell.dataset.value ?? cell.textContent;
  const number = INFINITE[text] ?? Number(text.replaceAll(",", "") || NaN);
  return { text, number };
}

function compare(a, b) {
  const numbers = [a, b].filter((one) => !Number.isNaN(one.number)).length;
  if (numbers === 2) return a.number < b.number ? -1 : Number(a.number > b.number);
  return numbers === 0 ? collator.compare(a.text, b.text) : 0;
}

function sort(table, head, column) {
  const descending = head.getAttribute("aria-sort") === "ascending";
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, key: key(row.cells[column]) }));
  // Words among numbers (nan, a dash) stay last in both directions.
  const numeric = rows.some((one) => !Number.isNaN(one.key.number));
  const last = (one) => Number(numeric && Number.isNaN(one.key.number));
  rows.sort((a, b) => last(a) - last(b) || (descending ? -1 : 1) * compare(a.key, b.key));
  table.tBodies[0].append(...rows.map((one) => one.row));
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sort(table, head, column));
  });
}

function search(table) {
  const box = document.createElement("input");
  const count = document.createElement("output");
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  box.type = "search";
  box.placeholder = "tensor, index, value or grade";
  box.setAttribute("aria-label", "Search the altered weights");
  box.addEventListener("input", () => {
    // Every word must occur, in any order.
    const words = box.value.toLowerCase().split(" ").filter(Boolean);
    let shown = 0;
    for (const one of rows) {
      one.row.hidden = !words.every((word) => one.text.includes(word));
      shown += Number(!one.row.hidden);
    }
    count.textContent = words.length ? `${shown} of ${rows.length}` : "";
  });
  const bar = document.createElement("p");
  bar.className = "search";
  bar.append(box, count);
  table.parentElement.before(bar);
}

for (const table of document.querySelectorAll("table.altered")) search(table);
