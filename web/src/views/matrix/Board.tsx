// The board: a canvas in a box that scrolls, a cursor by pointer or keys, and the same cells as a grid for readers.
import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, Show } from "solid-js";
import { hub } from "../../api/client";
import { useKeys } from "../../lib/keys";
import { theme } from "../../lib/prefs";
import { refOf, refText } from "../../lib/refs";
import { go, withQuery } from "../../lib/router";
import { plain } from "../../lib/text";
import { Text } from "../../parts/Text";
import { type BoardColumn, blocks, cellWords, columnWords, type MatrixData, single } from "../../lib/board";
import { draw, type Palette, type Place, readPalette, TITLES, type Window } from "./drawing";

/** Rows and columns around the cursor that exist as elements, for readers. */
const NEAR_ROWS = 3;
const NEAR_COLUMNS = 12;

/** Size in pixels from which on cells have the names of their rows beside them. */
const NAMED = 12;

/** Size of a block in pixels, and of the band with the names of groups. */
const BLOCK = 16;
const BAND = 22;

/** The zoom is the size of a cell in pixels, or `blocks`, in which all clusters have place. */
export type Zoom = number | "blocks";

export function Board(props: { data: MatrixData; zoom: Zoom; zoomIn: () => void }) {
  let box!: HTMLDivElement;
  let canvas!: HTMLCanvasElement;
  let palette: Palette | undefined;
  const [size, setSize] = createSignal({ width: 0, height: 0 });
  const [scroll, setScroll] = createSignal({ left: 0, top: 0 });
  const [cursor, setCursor] = createSignal<Place>();
  const [hover, setHover] = createSignal<Place>();
  /** As wide as the longest key, about 6.4 px a letter, but never so wide that cells have no place. */
  const longest = createMemo(() => Math.max(...props.data.rows.map((row) => row.key.length)));
  /** Blocks that have place beside each other; none before the board has a size. */
  const most = createMemo(() => (size().width ? Math.max(1, Math.floor((size().width - side() - 16) / BLOCK)) : 0));
  const board = createMemo(() => (props.zoom === "blocks" && most() ? blocks(props.data, most()) : single(props.data)));
  const cell = () => (props.zoom === "blocks" ? BLOCK : props.zoom);
  const side = () => (cell() < NAMED ? 8 : size().width < 600 ? 110 : Math.min(320, size().width * 0.28, Math.max(120, longest() * 6.4 + 24)));
  const band = () => (board().isGrouped ? BAND : 0);
  const head = () => band() + (cell() >= 14 && !board().isBlocks ? TITLES : 12);
  const view = createMemo((): Window => ({ ...scroll(), ...size(), cell: cell(), side: side(), head: head(), band: band() }));
  const at = () => hover() ?? cursor();

  // One frame draws once, however much changed before it.
  let frame = 0;
  const drawSoon = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      palette ??= readPalette(box);
      if (view().width) draw(canvas, board(), view(), palette, at());
    });
  };
  createEffect(() => { view(); at(); board(); drawSoon(); });
  createEffect(on(theme, () => { palette = undefined; drawSoon(); }));
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => { palette = undefined; drawSoon(); };
  dark.addEventListener("change", repaint);

  onMount(() => {
    const observer = new ResizeObserver(() => setSize({ width: box.clientWidth, height: box.clientHeight }));
    observer.observe(box);
    onCleanup(() => observer.disconnect());
  });
  onCleanup(() => {
    cancelAnimationFrame(frame);
    dark.removeEventListener("change", repaint);
  });

  function placeAt(event: MouseEvent): Place | undefined {
    const edge = box.getBoundingClientRect();
    const column = Math.floor((event.clientX - edge.left - side() + scroll().left) / cell());
    const row = Math.floor((event.clientY - edge.top - head() + scroll().top) / cell());
    const isOn = event.clientX - edge.left >= side() && event.clientY - edge.top >= head();
    return isOn && row >= 0 && column >= 0 && row < board().keys.length && column < board().columns.length ? { row, column } : undefined;
  }
  async function openAt(place: Place | undefined) {
    const key = place && board().keys[place.row];
    const column = place && board().columns[place.column];
    if (!place || !key || !column || !board().at(place.row, place.column)) return;
    if (column.clusters > 1) return zoomAt(place, column);
    const cluster = column.title;
    const found = await hub.apps({ text: key, cluster: [cluster], limit: 20 }).catch(() => undefined);
    const row = found?.items.find((one) => one.key === key);
    if (row) go(withQuery({ app: refText(refOf(row)), home: refOf(row).home, tab: undefined }));
  }

  function show(place: Place) {
    setHover(undefined);
    setCursor(place);
    const edge = cell();
    const [x, y] = [place.column * edge, place.row * edge];
    const [width, height] = [size().width - side(), size().height - head()];
    box.scrollTo({
      left: x < scroll().left ? x : x + edge > scroll().left + width ? x + edge - width : scroll().left,
      top: y < scroll().top ? y : y + edge > scroll().top + height ? y + edge - height : scroll().top,
    });
  }
  /** Shows the clusters of a block one by one, those with a problem first. */
  function zoomAt(place: Place, { first, clusters }: BoardColumn) {
    props.zoomIn();
    const places = Array.from({ length: clusters }, (_, number) => ({ row: place.row, column: first + number }));
    const target = places.find(({ row, column }) => board().at(row, column)?.problems) ?? places[0];
    if (target) requestAnimationFrame(() => show(target));
  }
  // The cursor stays at its app and cluster, whatever the column of that is now.
  createEffect(on(() => ({ shown: board(), data: props.data }), (next, before) => {
    if (!before || before.shown === next.shown) return;
    if (before.shown.columns.length !== next.shown.columns.length || before.shown.keys.length !== next.shown.keys.length) setHover(undefined);
    const from = cursor();
    const [key, column] = [before.shown.keys[from?.row ?? -1], before.shown.columns[from?.column ?? -1]];
    if (!from || key === undefined || !column) return;
    const cluster = before.data.columns[column.first]?.cluster;
    const place = next.data.columns.findIndex((one) => one.cluster === cluster);
    const now = { row: next.shown.keys.indexOf(key), column: next.shown.columns.findLastIndex((one) => one.first <= place) };
    if (now.row < 0 || place < 0) return void setCursor(undefined);
    if (now.row !== from.row || now.column !== from.column) setCursor(now);
  }));

  function move(rows: number, columns: number) {
    const from = cursor() ?? { row: 0, column: 0 };
    const limit = (n: number, most: number) => Math.max(0, Math.min(most - 1, n));
    show({ row: limit(from.row + rows, board().keys.length), column: limit(from.column + columns, board().columns.length) });
  }
  /** The next cell with a problem after the cursor, row by row. */
  function nextProblem() {
    const { keys, columns, at } = board();
    const all = keys.length * columns.length;
    const from = cursor() ? (cursor()?.row ?? 0) * columns.length + (cursor()?.column ?? 0) : -1;
    for (let step = 1; step <= all; step++) {
      const index = (from + step) % all;
      const place = { row: Math.floor(index / columns.length), column: index % columns.length };
      if (at(place.row, place.column)?.problems) return show(place);
    }
  }
  useKeys("Matrix", [
    { keys: "n", what: "Next cell with a problem", act: () => { box.focus(); nextProblem(); } },
    { keys: "Enter", what: "Open the app of the cell", act: () => void openAt(cursor()) },
  ]);
  function onKeyDown(event: KeyboardEvent) {
    const act = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [10, 0], PageUp: [-10, 0], Home: [0, -1e9], End: [0, 1e9] }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move(act[0] ?? 0, act[1] ?? 0);
  }

  const near = createMemo(() => {
    const { row, column } = cursor() ?? { row: 0, column: 0 };
    const range = (middle: number, reach: number, count: number) => {
      const first = Math.max(0, middle - reach);
      return Array.from({ length: Math.min(count, middle + reach + 1) - first }, (_, index) => first + index);
    };
    return { rows: range(row, NEAR_ROWS, board().keys.length), columns: range(column, NEAR_COLUMNS, board().columns.length) };
  });
  const name = (column: number) => {
    const found = board().columns[column];
    return found ? columnWords(found) : "";
  };
  const cellId = (place: Place) => `cell-${place.row}-${place.column}`;
  const tip = () => {
    const place = at();
    if (!place) return undefined;
    const x = side() + (place.column + 1) * cell() - scroll().left + 8;
    const y = head() + (place.row + 1) * cell() - scroll().top + 4;
    return { place, x: Math.min(x, Math.max(8, size().width - 290)), y: Math.min(y, size().height - 70) };
  };

  return (
    <div class="board-frame">
      <div class="board" ref={box} role="grid" aria-label="Apps by clusters" tabIndex={0} aria-rowcount={board().keys.length + 1} aria-colcount={board().columns.length + 1}
        aria-activedescendant={cursor() ? cellId(cursor() as Place) : undefined}
        onScroll={() => setScroll({ left: box.scrollLeft, top: box.scrollTop })} onKeyDown={onKeyDown} onFocus={() => cursor() || setCursor({ row: 0, column: 0 })}
        onPointerMove={(event) => setHover(placeAt(event))} onPointerLeave={() => setHover(undefined)} onClick={(event) => { const place = placeAt(event); if (place) setCursor(place); void openAt(place); }}>
        <div class="board-size" role="presentation" style={{ width: `${side() + board().columns.length * cell() + (board().isBlocks ? 0 : 40)}px`, height: `${head() + board().keys.length * cell() + 8}px` }}>
          <canvas class="board-canvas" ref={canvas} aria-hidden="true" style={{ width: `${size().width}px`, height: `${size().height}px` }} />
        </div>
        <div class="reader" role="rowgroup">
          <div role="row" aria-rowindex="1">
            <span role="columnheader">App</span>
            <For each={near().columns}>{(column) => <span role="columnheader" aria-colindex={column + 2}>{name(column)}</span>}</For>
          </div>
          <For each={near().rows}>
            {(row) => (
              <div role="row" aria-rowindex={row + 2}>
                <span role="rowheader"><Text value={board().keys[row] ?? ""} /></span>
                <For each={near().columns}>{(column) => <span role="gridcell" id={cellId({ row, column })} aria-colindex={column + 2}>{cellWords(board().at(row, column))}</span>}</For>
              </div>
            )}
          </For>
        </div>
      </div>
      <Show when={tip()}>
        {(shown) => (
          <div class="board-tip" aria-hidden="true" style={{ transform: `translate(${shown().x}px, ${shown().y}px)` }}>
            <p class="strong clip">{plain(board().keys[shown().place.row]?.split("/").at(-1) ?? "")}</p>
            <p>{name(shown().place.column)} <span class="muted">{cellWords(board().at(shown().place.row, shown().place.column))}</span></p>
          </div>
        )}
      </Show>
    </div>
  );
}
