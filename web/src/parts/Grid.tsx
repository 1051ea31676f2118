// A table of virtual rows: only those near the screen exist, at a fixed height, so that a million cost what forty do.
import { createVirtualizer } from "@tanstack/solid-virtual";
import { createEffect, createSignal, For, type JSX, on, Show } from "solid-js";
import { useKeys } from "../lib/keys";
import { narrow } from "../lib/prefs";
import { moveRow } from "../lib/rows";

export interface GridColumn {
  name: string;
  title: string;
  isNumber?: boolean;
  /** True for a column that needs no title but for readers. */
  isSilent?: boolean;
  /** Set where a header sorts: whether its order is the present one, and what a click does. */
  sort?: { isActive: boolean; by: () => void } | undefined;
}

/** Above this number rows are compact, since people then compare more than they read. */
const MANY = 200;

export const rowHeight = (total: number) => (narrow() ? 60 : total > MANY ? 28 : 36);

interface Props {
  label: string;
  /** The class that lays out the columns. */
  layout: string;
  columns: GridColumn[];
  /** Number of rows that are here, and of all that there are. */
  count: number;
  total: number;
  rowHeight: number;
  row: (index: number) => JSX.Element;
  /** The marks of a row as a whole: `data-open` for the one that a drawer shows. */
  isOpen: (index: number) => boolean;
  open: (index: number) => void;
  /** Set where rows can be chosen: whether one is, and what chooses it, or with `isRange` all from the one before. */
  choice?: { has: (index: number) => boolean; toggle: (index: number, isRange: boolean) => void } | undefined;
  /** The widths of the columns, where they are not those of the layout. */
  widths?: string | undefined;
  nearEnd?: () => void;
  /** A text that changes when the list is another one: it then starts at its top. */
  reset?: string;
  onRange?: (first: number, last: number) => void;
}

export function Grid(props: Props) {
  let box!: HTMLDivElement;
  const [active, setActive] = createSignal(0);
  /** False until a row has had the focus: the first `j` goes to the first row, not past it. */
  let isEntered = false;
  const virtualizer = createVirtualizer({
    get count() { return props.count; },
    getScrollElement: () => box,
    estimateSize: () => props.rowHeight,
    overscan: 8,
  });
  createEffect(on(() => props.rowHeight, () => virtualizer.measure(), { defer: true }));
  createEffect(on(() => props.reset, () => { box.scrollTop = 0; setActive(0); isEntered = false; }, { defer: true }));
  createEffect(() => {
    const items = virtualizer.getVirtualItems();
    const last = items.at(-1)?.index ?? 0;
    props.onRange?.(items[0]?.index ?? 0, last);
    if (props.count > 0 && last >= props.count - 20) props.nearEnd?.();
  });

  function move(to: number) {
    const next = Math.max(0, Math.min(props.count - 1, to));
    setActive(next);
    isEntered = true;
    virtualizer.scrollToIndex(next);
    // The row may not exist before the scrolling has taken effect.
    requestAnimationFrame(() => box.querySelector<HTMLElement>(`[data-index="${next}"]`)?.focus({ preventScroll: true }));
  }
  function choose(index: number, isRange: boolean) {
    if (index >= props.count) return;
    props.choice?.toggle(index, isRange);
    move(index + 1);
  }
  function onClick(event: MouseEvent, index: number) {
    if ((event.target as Element).closest("a, button, input")) return;
    if (props.choice && (event.shiftKey || event.ctrlKey || event.metaKey)) return props.choice.toggle(index, event.shiftKey);
    props.open(index);
  }
  const page = () => Math.max(1, Math.floor(box.clientHeight / props.rowHeight) - 1);
  // An open drawer has the keys, not the list behind it.
  const isBehind = () => document.querySelector(".drawer") !== null;
  useKeys(props.label, [
    { keys: "j", what: "Next row", act: () => (isBehind() ? moveRow(1) : move(isEntered ? active() + 1 : active())) },
    { keys: "k", what: "Previous row", act: () => (isBehind() ? moveRow(-1) : move(active() - 1)) },
    ...(props.choice ? [{ keys: " ", what: "Choose the row", act: () => isBehind() || choose(active(), false) }] : []),
    { keys: "Enter", what: "Open the row", act: () => props.count && props.open(active()) },
  ]);
  function onKeyDown(event: KeyboardEvent) {
    if (event.key === " " && event.shiftKey && props.choice) {
      event.preventDefault();
      return choose(active(), true);
    }
    const to = { ArrowDown: active() + 1, ArrowUp: active() - 1, PageDown: active() + page(), PageUp: active() - page(), Home: 0, End: props.count - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move(to);
  }

  return (
    <div class={`grid ${props.layout}`} ref={box} data-widths={!!props.widths} style={{ "--widths": props.widths }}>
     <div role="grid" aria-label={props.label} aria-multiselectable={!!props.choice} aria-rowcount={props.total + 1} onKeyDown={onKeyDown}>
      <div class="grid-head" role="row" aria-rowindex="1">
        <For each={props.columns}>
          {(column) => (
            <div class="cell" data-column={column.name} role="columnheader" classList={{ num: !!column.isNumber }}
              aria-sort={column.sort?.isActive ? "other" : undefined}>
              <Show when={column.sort} fallback={<span classList={{ reader: !!column.isSilent }}>{column.title}</span>}>
                {(sort) => (
                  <button type="button" class="plain sort" data-active={sort().isActive} onClick={() => sort().by()}>
                    {column.title}<Show when={sort().isActive}><span aria-hidden="true"> ↓</span></Show>
                  </button>
                )}
              </Show>
            </div>
          )}
        </For>
      </div>
      <div class="grid-body" role="rowgroup" style={{ height: `${virtualizer.getTotalSize()}px` }}>
        <For each={virtualizer.getVirtualItems()}>
          {(item) => (
            <div class="grid-row" role="row" tabIndex={item.index === active() ? 0 : -1} data-index={item.index} aria-rowindex={item.index + 2}
              aria-current={props.isOpen(item.index)} aria-selected={props.choice?.has(item.index)} style={{ transform: `translateY(${item.start}px)`, height: `${item.size}px` }}
              onFocusIn={() => { setActive(item.index); isEntered = true; }}
              onClick={(event) => onClick(event, item.index)}>
              {props.row(item.index)}
            </div>
          )}
        </For>
      </div>
     </div>
    </div>
  );
}

/** A cell of a row; its column decides where it stands and where it is left out. */
export const Cell = (props: { column: string; class?: string; children: JSX.Element }) => (
  <div class={`cell ${props.class ?? ""}`} data-column={props.column} role="gridcell">{props.children}</div>
);
