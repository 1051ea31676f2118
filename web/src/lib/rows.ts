// Moves the focus through rows outside of grids: entries, members, steps, results.
const ROWS = ".entry-main, .member, .change, .result, .step a.object-link, .log-row a.object-link, .tree-row, .graph-node";

/** Focuses the row `step` after the one that has the focus; the first one if none has. */
export function moveRow(step: 1 | -1) {
  const drawers = document.querySelectorAll<HTMLElement>(".drawer");
  const within: ParentNode = [...drawers].at(-1) ?? document.querySelector("main") ?? document;
  const rows = [...within.querySelectorAll<HTMLElement>(ROWS)].filter((row) => row.offsetParent !== null);
  const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = rows[at < 0 ? 0 : at + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
