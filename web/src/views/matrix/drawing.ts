// Draws the part of the matrix that is on the screen. Cells are drawn and not built: a million of them would be too many.
import type { Status } from "../../api/types";
import type { BoardCell, BoardColumn, BoardData } from "../../lib/board";

/** The place of the window on the whole board, and its sizes, all in CSS pixels. */
export interface Window {
  left: number;
  top: number;
  width: number;
  height: number;
  cell: number;
  /** Width of the row headers and height of the column headers, with the band of the names of groups at its top. */
  side: number;
  head: number;
  band: number;
}

export interface Place {
  row: number;
  column: number;
}

const NAMES = ["surface", "sunken", "line", "line-soft", "text", "muted", "accent", "hover", "fill-ready", "fill-progress", "fill-failed", "fill-notfound", "fill-terminating", "fill-unknown"] as const;
export type Palette = Record<(typeof NAMES)[number], string> & { font: string };

/** Reads the tokens as the colours that they are now; a canvas knows no variables. */
export function readPalette(host: HTMLElement): Palette {
  const probe = document.createElement("span");
  host.append(probe);
  const colors = Object.fromEntries(NAMES.map((name) => {
    probe.style.color = `var(--${name})`;
    return [name, getComputedStyle(probe).color];
  }));
  probe.remove();
  return { ...colors, font: getComputedStyle(host).fontFamily } as Palette;
}

/** Height of the names of clusters above their columns. */
export const TITLES = 84;

const FILLS: Record<Status, keyof Palette> = {
  Current: "fill-ready", InProgress: "fill-progress", Failed: "fill-failed", NotFound: "fill-notfound",
  Terminating: "fill-terminating", Unknown: "fill-unknown",
};

/** The first and last index of what stands between two edges. */
const span = (offset: number, size: number, cell: number, count: number): [number, number] =>
  [Math.max(0, Math.floor(offset / cell)), Math.min(count - 1, Math.ceil((offset + size) / cell))];

export function draw(canvas: HTMLCanvasElement, data: BoardData, view: Window, palette: Palette, cursor: Place | undefined) {
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(view.width * ratio) || canvas.height !== Math.round(view.height * ratio)) {
    canvas.width = Math.round(view.width * ratio);
    canvas.height = Math.round(view.height * ratio);
  }
  const ctx = canvas.getContext("2d");
  if (!ctx) return;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = palette.surface;
  ctx.fillRect(0, 0, view.width, view.height);

  const { cell, side, head } = view;
  const [row0, row1] = span(view.top, view.height - head, cell, data.keys.length);
  const [col0, col1] = span(view.left, view.width - side, cell, data.columns.length);
  const x = (column: number) => side + column * cell - view.left;
  const y = (row: number) => head + row * cell - view.top;

  drawLines(ctx, data, view, palette, cursor, row0, row1);
  ctx.save();
  ctx.beginPath();
  ctx.rect(side, head, view.width - side, view.height - head);
  ctx.clip();
  for (let column = col0; column <= col1; column++) {
    if (data.columns[column]?.freshness !== "live") hatch(ctx, x(column), head, cell, Math.min(view.height - head, data.keys.length * cell - view.top), palette);
  }
  for (let row = row0; row <= row1; row++) {
    for (let column = col0; column <= col1; column++) {
      const shown = data.at(row, column);
      if (shown) drawCell(ctx, shown, x(column), y(row), cell, palette);
    }
  }
  if (cursor) {
    ctx.strokeStyle = palette.accent;
    ctx.lineWidth = 2;
    ctx.strokeRect(x(cursor.column) + 0.5, y(cursor.row) + 0.5, cell - 1, cell - 1);
  }
  ctx.restore();

  ctx.textBaseline = "middle";
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, head, side, view.height - head);
  ctx.clip();
  if (side > cell) for (let row = row0; row <= row1; row++) drawKey(ctx, data.keys[row] ?? "", y(row) + cell / 2, side, cell, palette, cursor?.row === row);
  ctx.restore();

  ctx.save();
  ctx.beginPath();
  ctx.rect(side, 0, view.width - side, head);
  ctx.clip();
  if (view.band) for (let column = col0; column <= col1; column++) drawGroup(ctx, data, column, view, palette);
  if (cell >= 14 && !data.isBlocks) for (let column = col0; column <= col1; column++) drawCluster(ctx, data.columns[column], x(column) + cell / 2, head, palette, cursor?.column === column);
  ctx.restore();
}

/** Lines that lead the eye from a name to its cells, and the row of the cursor. */
function drawLines(ctx: CanvasRenderingContext2D, data: BoardData, view: Window, palette: Palette, cursor: Place | undefined, row0: number, row1: number) {
  const { cell, side, head } = view;
  const right = Math.min(view.width, side + data.columns.length * cell - view.left);
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, head, view.width, view.height - head);
  ctx.clip();
  for (let row = row0; row <= row1; row++) {
    const y = head + row * cell - view.top;
    if (row === cursor?.row) {
      ctx.fillStyle = palette.hover;
      ctx.fillRect(0, y, right, cell);
    }
    if (cell < 16) continue;
    ctx.fillStyle = palette["line-soft"];
    ctx.fillRect(0, y + cell - 0.5, right, 1);
  }
  ctx.restore();
}

function hatch(ctx: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, palette: Palette) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, width, height);
  ctx.clip();
  ctx.fillStyle = palette.sunken;
  ctx.fillRect(x, y, width, height);
  ctx.strokeStyle = palette.line;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let at = -width; at < height; at += 6) {
    ctx.moveTo(x, y + at + width);
    ctx.lineTo(x + width, y + at);
  }
  ctx.stroke();
  ctx.restore();
}

function drawCell(ctx: CanvasRenderingContext2D, { meaning, apps, problems }: BoardCell, x: number, y: number, cell: number, palette: Palette) {
  const gap = cell >= 14 ? 2 : 1;
  const size = cell - 2 * gap;
  const left = x + gap;
  const top = y + gap;
  if (meaning.freshness !== "live" && (apps === 1 || problems === apps)) {
    // Only an outline: what was known there is not known now.
    ctx.strokeStyle = palette.muted;
    ctx.lineWidth = 1;
    ctx.setLineDash(meaning.freshness === "lost" ? [2, 2] : []);
    ctx.strokeRect(left + 0.5, top + 0.5, size - 1, size - 1);
    ctx.setLineDash([]);
    if (cell >= 14 && meaning.health !== "Current") drawShape(ctx, meaning.health, left + size / 2, top + size / 2, size / 4, palette.muted);
    return;
  }
  if (problems && problems < apps) {
    // The part of a block that has problems stands on the rest of it, and is never too small to be seen.
    const part = Math.max(Math.ceil(size / 3), Math.round((size * problems) / apps));
    // Neutral, so that its only colour is that of what is wrong.
    ctx.fillStyle = palette.line;
    ctx.fillRect(left, top, size, size - part);
    ctx.fillStyle = palette[meaning.effective === "Current" ? "fill-failed" : FILLS[meaning.effective]];
    ctx.fillRect(left, top + size - part, size, part);
    return;
  }
  ctx.fillStyle = palette[FILLS[meaning.effective]];
  if (meaning.effective === "Current") {
    // Well cells are smaller, so that the others stand out without their colour.
    const inset = cell >= 12 ? Math.floor(size * 0.2) : 0;
    ctx.beginPath();
    ctx.roundRect(left + inset, top + inset, size - 2 * inset, size - 2 * inset, 2);
    ctx.fill();
  } else {
    ctx.beginPath();
    ctx.roundRect(left, top, size, size, 2);
    ctx.fill();
    if (cell >= 14) drawShape(ctx, meaning.effective, left + size / 2, top + size / 2, size / 4, palette.surface);
  }
  if (meaning.problem && meaning.effective === "Current") {
    ctx.strokeStyle = palette["fill-failed"];
    ctx.lineWidth = cell >= 14 ? 2 : 1;
    ctx.strokeRect(left + 1, top + 1, size - 2, size - 2);
  }
}

function drawShape(ctx: CanvasRenderingContext2D, status: Status, x: number, y: number, r: number, color: string) {
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.6;
  ctx.beginPath();
  if (status === "Failed") {
    ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r);
    ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r);
  } else if (status === "InProgress") ctx.arc(x, y, r, 0, Math.PI * 1.5);
  else if (status === "Terminating") { ctx.moveTo(x - r, y); ctx.lineTo(x + r, y); }
  else if (status === "NotFound") ctx.arc(x, y, r, 0, Math.PI * 2);
  else { ctx.moveTo(x, y - r); ctx.lineTo(x + r, y); ctx.lineTo(x, y + r); ctx.lineTo(x - r, y); ctx.closePath(); }
  ctx.stroke();
}

/** Cuts a text to a width; the end of it says least. */
function fit(ctx: CanvasRenderingContext2D, text: string, width: number): string {
  if (ctx.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && ctx.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}

function drawKey(ctx: CanvasRenderingContext2D, key: string, y: number, side: number, cell: number, palette: Palette, isAt: boolean) {
  const cut = key.lastIndexOf("/");
  const size = cell >= 20 ? 13 : 11;
  ctx.textAlign = "left";
  ctx.font = `500 ${size}px ${palette.font}`;
  ctx.fillStyle = isAt ? palette.accent : palette.text;
  const name = fit(ctx, key.slice(cut + 1), side - 20);
  ctx.fillText(name, 0, y);
  const at = ctx.measureText(name).width + 8;
  if (cut <= 0 || side - at < 48) return;
  ctx.font = `400 11px ${palette.font}`;
  ctx.fillStyle = palette.muted;
  ctx.fillText(fit(ctx, key.slice(0, cut), side - at - 16), at, y);
}

/** Draws the name of a group at its first column, or at the first that is shown, and a line before it. */
function drawGroup(ctx: CanvasRenderingContext2D, { columns }: BoardData, column: number, view: Window, palette: Palette) {
  const group = columns[column]?.group;
  const isFirst = columns[column - 1]?.group !== group;
  const x = view.side + column * view.cell - view.left;
  if (isFirst && column > 0) {
    ctx.fillStyle = palette.line;
    ctx.fillRect(x - 0.5, 0, 1, view.height);
  }
  if (!isFirst && x - view.cell >= view.side) return;
  let next = column;
  while (next < columns.length && columns[next]?.group === group && x + (next - column) * view.cell < view.width) next += 1;
  ctx.textAlign = "left";
  ctx.font = `600 12px ${palette.font}`;
  ctx.fillStyle = palette.text;
  const left = Math.max(x, view.side);
  const room = x + (next - column) * view.cell - left - 8;
  if (room > 12) ctx.fillText(fit(ctx, group ?? "", room), left + 2, view.band / 2);
}

function drawCluster(ctx: CanvasRenderingContext2D, column: BoardColumn | undefined, x: number, head: number, palette: Palette, isAt: boolean) {
  if (!column) return;
  ctx.save();
  ctx.translate(x, head - 8);
  ctx.rotate(-Math.PI / 3);
  ctx.textAlign = "left";
  ctx.font = `${isAt ? 600 : 400} 12px ${palette.font}`;
  ctx.fillStyle = isAt ? palette.accent : column.freshness === "live" ? palette.text : palette.muted;
  ctx.fillText(fit(ctx, column.freshness === "live" ? column.title : `${column.title} (${column.freshness})`, TITLES), 0, 0);
  ctx.restore();
}
