// Sorts the rows of the index by a column: once up, once down.
"use strict";

const body = document.querySelector(".index tbody");
const heads = [...document.querySelectorAll(".index thead th")];

heads.forEach((head, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  button.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].sort((a, b) => compared(a.cells[column], b.cells[column]));
    body.replaceChildren(...(down ? rows.reverse() : rows));
  });
  head.replaceChildren(button);
});

function compared(one, other) {
  if (one.dataset.value !== undefined) return Number(one.dataset.value) - Number(other.dataset.value);
  return one.textContent.localeCompare(other.textContent, "en", { numeric: true });
}
