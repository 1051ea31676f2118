// The board: a canvas in a box that scrolls, a cursor by pointer or keys, and the same cells as a grid for readers.
import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, Show } from "solid-js";
import { hub } from "../../api/client";
import { useKeys } from "../../lib/keys";
import { theme } from "../../lib/prefs";
import { refOf, refText } from "../../lib/refs";
import { go, withQuery } from "../../lib/router";
import { plain } from "../../lib/text";
import { statusWord } from "../../lib/words";
import { Text } from "../../parts/Text";
import { cellAt, draw, type MatrixData, type Palette, type Place, readPalette, type Window } from "./drawing";

/** Rows and columns around the cursor that exist as elements, for readers. */
const NEAR_ROWS = 3;
const NEAR_COLUMNS = 12;

export function words(data: MatrixData, place: Place): string {
  const meaning = cellAt(data, place);
  if (!meaning) return "not there";
  if (meaning.freshness !== "live") return `was ${statusWord(meaning.health)}, ${meaning.freshness}`;
  return statusWord(meaning.effective) + (meaning.problem && meaning.effective === "Current" ? ", with another problem" : "");
}

export function Board(props: { data: MatrixData; cell: number }) {
  let box!: HTMLDivElement;
  let canvas!: HTMLCanvasElement;
  let palette: Palette | undefined;
  const [size, setSize] = createSignal({ width: 0, height: 0 });
  const [scroll, setScroll] = createSignal({ left: 0, top: 0 });
  const [cursor, setCursor] = createSignal<Place>();
  const [hover, setHover] = createSignal<Place>();
  /** As wide as the longest key, about 6.4 px a letter, but never so wide that cells have no place. */
  const longest = createMemo(() => Math.max(...props.data.rows.map((row) => row.key.length)));
  const side = () => (size().width < 600 ? 110 : Math.min(320, size().width * 0.28, Math.max(120, longest() * 6.4 + 24)));
  const head = () => (props.cell >= 14 ? 84 : 12);
  const view = createMemo((): Window => ({ ...scroll(), ...size(), cell: props.cell, side: side(), head: head() }));
  const at = () => hover() ?? cursor();

  // One frame draws once, however much changed before it.
  let frame = 0;
  const drawSoon = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      palette ??= readPalette(box);
      if (view().width) draw(canvas, props.data, view(), palette, at());
    });
  };
  createEffect(() => { view(); at(); props.data; drawSoon(); });
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
    const column = Math.floor((event.clientX - edge.left - side() + scroll().left) / props.cell);
    const row = Math.floor((event.clientY - edge.top - head() + scroll().top) / props.cell);
    const isOn = event.clientX - edge.left >= side() && event.clientY - edge.top >= head();
    return isOn && row >= 0 && column >= 0 && row < props.data.rows.length && column < props.data.columns.length ? { row, column } : undefined;
  }
  async function openAt(place: Place | undefined) {
    const key = place && props.data.rows[place.row]?.key;
    const cluster = place && props.data.columns[place.column]?.cluster;
    if (!place || !key || !cluster || !cellAt(props.data, place)) return;
    const found = await hub.apps({ text: key, cluster: [cluster], limit: 20 }).catch(() => undefined);
    const row = found?.items.find((one) => one.key === key);
    if (row) go(withQuery({ app: refText(refOf(row)), home: refOf(row).home, tab: undefined }));
  }

  function show(place: Place) {
    setHover(undefined);
    setCursor(place);
    const { cell } = props;
    const [x, y] = [place.column * cell, place.row * cell];
    const [width, height] = [size().width - side(), size().height - head()];
    box.scrollTo({
      left: x < scroll().left ? x : x + cell > scroll().left + width ? x + cell - width : scroll().left,
      top: y < scroll().top ? y : y + cell > scroll().top + height ? y + cell - height : scroll().top,
    });
  }
  function move(rows: number, columns: number) {
    const from = cursor() ?? { row: 0, column: 0 };
    const limit = (n: number, most: number) => Math.max(0, Math.min(most - 1, n));
    show({ row: limit(from.row + rows, props.data.rows.length), column: limit(from.column + columns, props.data.columns.length) });
  }
  /** The next cell with a problem after the cursor, row by row. */
  function nextProblem() {
    const { rows, columns } = props.data;
    const all = rows.length * columns.length;
    const from = cursor() ? (cursor()?.row ?? 0) * columns.length + (cursor()?.column ?? 0) : -1;
    for (let step = 1; step <= all; step++) {
      const index = (from + step) % all;
      const place = { row: Math.floor(index / columns.length), column: index % columns.length };
      if (cellAt(props.data, place)?.problem) return show(place);
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
    return { rows: range(row, NEAR_ROWS, props.data.rows.length), columns: range(column, NEAR_COLUMNS, props.data.columns.length) };
  });
  const cellId = (place: Place) => `cell-${place.row}-${place.column}`;
  const tip = () => {
    const place = at();
    if (!place) return undefined;
    const x = side() + (place.column + 1) * props.cell - scroll().left + 8;
    const y = head() + (place.row + 1) * props.cell - scroll().top + 4;
    return { place, x: Math.min(x, Math.max(8, size().width - 290)), y: Math.min(y, size().height - 70) };
  };

  return (
    <div class="board-frame">
      <div class="board" ref={box} role="grid" aria-label="Apps by clusters" tabIndex={0} aria-rowcount={props.data.rows.length + 1} aria-colcount={props.data.columns.length + 1}
        aria-activedescendant={cursor() ? cellId(cursor() as Place) : undefined}
        onScroll={() => setScroll({ left: box.scrollLeft, top: box.scrollTop })} onKeyDown={onKeyDown} onFocus={() => cursor() || setCursor({ row: 0, column: 0 })}
        onPointerMove={(event) => setHover(placeAt(event))} onPointerLeave={() => setHover(undefined)} onClick={(event) => { const place = placeAt(event); if (place) setCursor(place); void openAt(place); }}>
        <div class="board-size" role="presentation" style={{ width: `${side() + props.data.columns.length * props.cell + 40}px`, height: `${head() + props.data.rows.length * props.cell + 8}px` }}>
          <canvas class="board-canvas" ref={canvas} aria-hidden="true" style={{ width: `${size().width}px`, height: `${size().height}px` }} />
        </div>
        <div class="reader" role="rowgroup">
          <div role="row" aria-rowindex="1">
            <span role="columnheader">App</span>
            <For each={near().columns}>{(column) => <span role="columnheader" aria-colindex={column + 2}><Text value={props.data.columns[column]?.cluster ?? ""} /></span>}</For>
          </div>
          <For each={near().rows}>
            {(row) => (
              <div role="row" aria-rowindex={row + 2}>
                <span role="rowheader"><Text value={props.data.rows[row]?.key ?? ""} /></span>
                <For each={near().columns}>{(column) => <span role="gridcell" id={cellId({ row, column })} aria-colindex={column + 2}>{words(props.data, { row, column })}</span>}</For>
              </div>
            )}
          </For>
        </div>
      </div>
      <Show when={tip()}>
        {(shown) => (
          <div class="board-tip" aria-hidden="true" style={{ transform: `translate(${shown().x}px, ${shown().y}px)` }}>
            <p class="strong clip">{plain(props.data.rows[shown().place.row]?.key.split("/").at(-1) ?? "")}</p>
            <p><Text value={props.data.columns[shown().place.column]?.cluster ?? ""} /> <span class="muted">{words(props.data, shown().place)}</span></p>
          </div>
        )}
      </Show>
    </div>
  );
}
