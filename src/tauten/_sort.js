// Sort a table by the column whose heading is pressed: rising, then falling. What has no value goes last.
"use strict";
const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
const value = (row, column) => {
  const { value, missing } = row.cells[column].dataset;
  if (missing !== undefined) return null;
  return value === undefined ? row.cells[column].textContent : Number(value);
};
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), body = head.closest("table").tBodies[0];
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const keyed = [...body.rows].map((row) => [value(row, head.cellIndex), row]);
    keyed.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
    body.append(...keyed.map(([, row]) => row));
  });
}
