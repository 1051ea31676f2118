// Rows of a list over server pages. The order that is shown stays as it is: rows change in place, and that others came,
// went or moved is counted until the reader asks for the new order.
import { batch, createEffect, createSignal, on, onCleanup, untrack } from "solid-js";
import { createStore, reconcile } from "solid-js/store";
import type { AnswerState, MissingCluster } from "../api/types";
import { HubError } from "../api/client";
import { link, version } from "../live/live";
import { AGAIN_AFTER } from "./answer";
import { movedRows } from "./order";

export interface Page<R> {
  items: R[];
  total: number;
  next?: string | null;
  state: AnswerState;
  missing: MissingCluster[];
  missingOmitted?: number;
}

type Ask<K, R> = (key: K, cursor: string | undefined, signal: AbortSignal) => Promise<Page<R>>;

interface Cover {
  state: AnswerState;
  missing: MissingCluster[];
  missingOmitted: number;
}

/** The time between two readings of pages that the stream does not cover. */
const SLOW = 10_000;

export function createPaged<K, R extends object>(key: () => K, idOf: (row: R) => string, ask: Ask<K, R>, options: { every: number | undefined }) {
  const [order, setOrder] = createSignal<string[]>([]);
  const [rows, setRows] = createStore<Record<string, R>>({});
  const [total, setTotal] = createSignal<number>();
  const [cover, setCover] = createStore<{ value: Cover | undefined }>({ value: undefined });
  const [error, setError] = createSignal<HubError>();
  const [isLoading, setLoading] = createSignal(false);
  const [moved, setMoved] = createSignal(0);
  /** Rows that the last reading no longer had where they are shown, so that their values may be old. */
  const [left, setLeft] = createSignal<ReadonlySet<string>>(new Set());
  /** Where each page begins; the first one without a cursor. */
  let starts: { cursor: string | undefined; from: number }[] = [];
  let next: string | undefined;
  let control = new AbortController();
  let wasLoading = false;
  let range = { first: 0, last: 0 };
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function begin() {
    control.abort();
    clearTimeout(timer);
    control = new AbortController();
    const { signal } = control;
    setLoading(true);
    try {
      const page = await ask(untrack(key), undefined, signal);
      if (signal.aborted) return;
      batch(() => {
        starts = [{ cursor: undefined, from: 0 }];
        setRows(reconcile(Object.fromEntries(page.items.map((row) => [idOf(row), row]))));
        setOrder(page.items.map(idOf));
        setMoved(0);
        setLeft(new Set<string>());
        note(page);
        next = page.next ?? undefined;
        setError(undefined);
        setLoading(false);
      });
    } catch (problem) {
      if (!signal.aborted) fail(problem);
    }
  }

  function fail(problem: unknown) {
    const known = problem instanceof HubError ? problem : new HubError(-1, String(problem));
    batch(() => {
      setError(known);
      setLoading(false);
      // A hub that is away or busy takes nothing from what is known.
      if (known.status !== 0 && known.status !== 503) setOrder([]);
    });
    if (known.status === 0 || known.status === 503) timer = setTimeout(() => void begin(), AGAIN_AFTER);
  }

  function note(page: Page<R>) {
    setTotal(page.total);
    wasLoading = page.state === "loading";
    setCover("value", { state: page.state, missing: page.missing, missingOmitted: page.missingOmitted ?? 0 });
  }

  async function more() {
    if (!next || isLoading()) return;
    const { signal } = control;
    const cursor = next;
    setLoading(true);
    try {
      const page = await ask(untrack(key), cursor, signal);
      if (signal.aborted) return;
      batch(() => {
        const known = new Set(order());
        const added = page.items.filter((row) => !known.has(idOf(row)));
        starts.push({ cursor, from: order().length });
        for (const row of page.items) setRows(idOf(row), reconcile(row as never));
        welcome(page.items);
        setOrder((all) => [...all, ...added.map(idOf)]);
        note(page);
        next = page.next ?? undefined;
        setLoading(false);
      });
    } catch (problem) {
      if (signal.aborted) return;
      // A hub that was started again knows no cursor of the former one.
      if (problem instanceof HubError && problem.parameter === "cursor") return void begin();
      fail(problem);
    }
  }

  /** Reads the first page, or the one on the screen, once more, and takes its values but not its order. */
  async function refresh(cursor: string | undefined, from: number) {
    const { signal } = control;
    try {
      const page = await ask(untrack(key), cursor, signal);
      if (signal.aborted) return;
      batch(() => {
        takeValues(page.items);
        // Compared first: what was being read until now may move freely once more.
        if (cursor === undefined) compare(page.items.map(idOf), !page.next);
        else leave(from, page.items.map(idOf), !page.next);
        note(page);
      });
    } catch (problem) {
      if (!signal.aborted && problem instanceof HubError && problem.status > 0) setError(problem);
    }
  }

  function takeValues(items: R[]) {
    for (const row of items) {
      const id = idOf(row);
      // Rows that are new stay out of sight until the reader asks for them.
      if (rows[id]) setRows(id, reconcile(row as never));
    }
    welcome(items);
  }

  /** Takes the mark of rows that have come back. */
  function welcome(items: R[]) {
    const back = new Set(items.map(idOf).filter((id) => left().has(id)));
    if (back.size) setLeft((all) => new Set([...all].filter((id) => !back.has(id))));
  }

  /** Marks the rows that are shown of a page, the last one if `isLast`, and that a reading of it no longer has. */
  function leave(from: number, now: readonly string[], isLast: boolean) {
    const here = new Set(now);
    const following = starts.find((start) => start.from > from);
    const gone = order().slice(from, isLast ? undefined : following?.from).filter((id) => !here.has(id) && !left().has(id));
    if (gone.length) setLeft((all) => new Set([...all, ...gone]));
  }

  /** Counts what differs between the first rows as shown and as they would be now, which are all rows if `isLast`. */
  function compare(now: string[], isLast: boolean) {
    // A list that is empty, or whose clusters are still being read, has no order that a reader could lose.
    if (now.length && (!order().length || (wasLoading && starts.length <= 1)) && !isLoading()) return void begin();
    // Of a list that goes on, only as many rows can be compared as came; a shorter one has lost some.
    const shown = !isLast && (starts.length > 1 || next) ? order().slice(0, now.length) : order();
    setMoved(movedRows(shown, now));
    leave(0, now, isLast);
  }

  let readAt = Date.now();
  createEffect(on(key, () => void begin()));
  createEffect(
    on([version, link], () => {
      if (link() === "away") return;
      const problem = error();
      if (options.every === undefined) {
        // What was refused once is refused again; a hub that was away may be back.
        if (problem && (problem.status === 0 || problem.status === 503)) void begin();
        return;
      }
      if (problem) return void begin();
      clearTimeout(timer);
      const start = [...starts].reverse().find((one) => one.from <= range.first);
      const every = start?.cursor === undefined ? options.every : SLOW;
      timer = setTimeout(() => {
        readAt = Date.now();
        void refresh(start?.cursor, start?.from ?? 0);
      }, Math.max(0, readAt + every - Date.now()));
    }, { defer: true }),
  );
  onCleanup(() => {
    control.abort();
    clearTimeout(timer);
  });

  return {
    order, rows, total, error, isLoading, moved, more,
    hasLeft: (id: string) => left().has(id),
    cover: () => cover.value,
    /** Shows the present order. */
    reorder: begin,
    hasMore: () => next !== undefined,
    shows: (first: number, last: number) => { range = { first, last }; },
    /** Takes what the stream says of the first rows. */
    stream: (items: R[], now: string[] | undefined, all: number | undefined) => batch(() => {
      takeValues(items);
      if (now && total() !== undefined) compare(now, now.length >= (all ?? total() ?? 0));
      if (all !== undefined) setTotal(all);
    }),
  };
}
