// Rows that are chosen in a list, to do one thing to all of them. They are forgotten with the list.
import { createSignal } from "solid-js";

export function createSelection<R>(idOf: (row: R) => string) {
  const [chosen, setChosen] = createSignal<ReadonlyMap<string, R>>(new Map());
  /** The row from which a range is chosen. */
  let anchor: string | undefined;
  return {
    chosen,
    has: (row: R | undefined) => row !== undefined && chosen().has(idOf(row)),
    clear: () => {
      anchor = undefined;
      setChosen(new Map());
    },
    set: (rows: R[]) => setChosen(new Map(rows.map((row) => [idOf(row), row]))),
    /** Chooses the row at `index` or leaves it, or with `isRange` chooses all from the one before. */
    toggle(index: number, isRange: boolean, at: (index: number) => R | undefined) {
      const next = new Map(chosen());
      if (isRange) {
        let from = index;
        for (let one = 0, row = at(0); row; row = at(++one)) if (idOf(row) === anchor) from = one;
        for (let one = Math.min(from, index); one <= Math.max(from, index); one++) {
          const row = at(one);
          if (row) next.set(idOf(row), row);
        }
      } else {
        const row = at(index);
        if (!row) return;
        if (!next.delete(idOf(row))) next.set(idOf(row), row);
        anchor = idOf(row);
      }
      setChosen(next);
    },
  };
}
