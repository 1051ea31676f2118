// Apps by clusters, a cell a pair.
import { createSignal, For, Show } from "solid-js";
import { hub } from "../../api/client";
import type { Matrix as MatrixAnswer } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { command } from "../../lib/command";
import { go, param, withQuery } from "../../lib/router";
import { count, number } from "../../lib/text";
import { Glyph } from "../../parts/Glyph";
import { ErrorNote, ListFoot, Loading, Note, ViewCommand } from "../../parts/Notes";
import { FilterBar } from "../apps/FilterBar";
import { readFilters, toParams } from "../apps/filters";
import { countPairs, type MatrixData, sorted } from "../../lib/board";
import { LabelMenu } from "../apps/LabelMenu";
import { Board, type Zoom } from "./Board";

const PAGE = 500;
/** Pages that are read at once; a reader of more rows filters. */
const MOST_PAGES = 20;
const ZOOMS: readonly Zoom[] = ["blocks", 8, 12, 16, 20, 24];
/** Size of cells at which the names of apps and clusters have place. */
const READABLE = 16;
/** With more clusters the board begins with blocks. */
const MOST_CELLS = 160;

interface Read {
  data: MatrixData;
  answer: MatrixAnswer;
  pairs: number;
  problems: number;
}

async function readAll(filters: ReturnType<typeof toParams> & { label?: string | undefined }, signal: AbortSignal): Promise<{ read: Read }> {
  const answer = await hub.matrix({ ...filters, limit: PAGE }, signal);
  const rows = [...answer.rows];
  const legend = new Map(answer.legend.map((one) => [one.code, one]));
  for (let next = answer.next, pages = 1; next && pages < MOST_PAGES; pages++) {
    const page = await hub.matrix({ ...filters, limit: PAGE, cursor: next }, signal);
    rows.push(...page.rows);
    for (const one of page.legend) legend.set(one.code, one);
    next = page.next;
  }
  const data = sorted(answer.columns, rows, legend);
  return { read: { data, answer, ...countPairs(data) } };
}

export default function Matrix() {
  const filters = () => readFilters();
  const label = () => param("label") || undefined;
  const [shown, setShown] = createSignal<Read>();
  const [answer, again] = createAnswer(
    () => ({ ...toParams(filters()), ...(label() ? { label: label() } : {}) }),
    async (key, signal) => {
      // The board is not reactive in its cells, so it is kept beside the answer.
      setShown((await readAll(key, signal)).read);
      return { at: Date.now() };
    },
    { every: 2000 },
  );
  const zoom = (): Zoom => {
    const asked = ZOOMS.find((one) => String(one) === param("zoom"));
    if (asked) return asked;
    const columns = shown()?.data.columns.length ?? 0;
    return columns > MOST_CELLS ? "blocks" : columns > 80 ? 8 : columns > 40 ? 16 : 24;
  };
  const step = (by: number) => {
    const next = ZOOMS[ZOOMS.indexOf(zoom()) + by];
    if (next) go(withQuery({ zoom: String(next) }), { replace: true });
  };
  const sentence = () => {
    const read = shown();
    if (!read) return "Matrix";
    const { rows, columns } = read.data;
    const none = read.answer.state === "complete" ? `none of ${count(read.pairs, "pair")} has a problem` : `of ${count(read.pairs, "pair")} no problem is known yet`;
    const bad = read.problems ? `${number(read.problems)} of ${count(read.pairs, "pair")} ${read.problems === 1 ? "has a problem" : "have problems"}` : none;
    return `${count(rows.length, "app")} by ${count(columns.length, "cluster")}; ${bad}.`;
  };

  return (
    <div class="view list-view matrix">
      <header class="view-head">
        <h1>{sentence()}</h1>
        <ViewCommand text={command("overview")} />
      </header>
      <div class="matrix-tools">
        <FilterBar filters={filters()} isPlain />
        <LabelMenu title="Group clusters" chosen={label()} choose={(value) => go(withQuery({ label: value === label() ? undefined : value }))} />
        <div class="zoom" role="group" aria-label="Zoom">
          <button type="button" class="button" aria-label="Smaller cells" disabled={zoom() === ZOOMS[0]} onClick={() => step(-1)}>−</button>
          <button type="button" class="button" aria-label="Larger cells" disabled={zoom() === ZOOMS.at(-1)} onClick={() => step(1)}>+</button>
        </div>
      </div>
      <ErrorNote error={answer.error} what="The matrix" retry={again} />
      <Show when={shown()} fallback={<Show when={!answer.error}><Loading what="the matrix" rows={12} /></Show>}>
        {(read) => (
          <>
            <Show when={read().answer.next || read().answer.columnsOmitted}>
              <p class="muted">The first {number(read().data.rows.length)} of {count(read().answer.total, "app")}{read().answer.columnsOmitted ? `, and without ${count(read().answer.columnsOmitted ?? 0, "cluster")}` : ""}: filter to see others.</p>
            </Show>
            <Show when={read().data.rows.length} fallback={<Note kind="quiet" title="No app matches these filters." action={<a class="button" href="/matrix">Clear all filters</a>} />}>
              <Board data={read().data} zoom={zoom()} zoomIn={() => go(withQuery({ zoom: String(READABLE) }), { replace: true })} />
            </Show>
            <ListFoot state={read().answer.state} missing={read().answer.missing} omitted={read().answer.missingOmitted}>
              <Legend hasBlocks={zoom() === "blocks"} />
            </ListFoot>
          </>
        )}
      </Show>
    </div>
  );
}

const Legend = (props: { hasBlocks: boolean }) => (
  <ul class="legend" aria-label="Legend">
    <For each={["Current", "InProgress", "Failed", "NotFound", "Terminating"] as const}>
      {(status) => <li class="mark"><span class="legend-cell" data-status={status} aria-hidden="true" /><Glyph status={status} /> {status === "Current" ? "Ready" : status}</li>}
    </For>
    <Show when={props.hasBlocks} fallback={<li class="mark"><span class="legend-cell" data-problem="true" aria-hidden="true" /> Ready with another problem</li>}>
      <li class="mark"><span class="legend-cell" data-block="true" aria-hidden="true" /> several clusters, the part with problems at the foot</li>
    </Show>
    <li class="mark"><span class="legend-cell" data-freshness="lost" aria-hidden="true" /> not live: dashed, on a hatched ground</li>
  </ul>
);
