// Rows that are chosen in a list, to do one thing to all of them. They are forgotten with the list.
import { createSignal } from "solid-js";

export function createSelection<R>(idOf: (row: R) => string) {
  const [chosen, setChosen] = createSignal<ReadonlyMap<string, R>>(new Map());
  /** The index from which a range is chosen. */
  let anchor = 0;
  return {
    chosen,
    has: (row: R | undefined) => row !== undefined && chosen().has(idOf(row)),
    clear: () => setChosen(new Map()),
    set: (rows: R[]) => setChosen(new Map(rows.map((row) => [idOf(row), row]))),
    /** Chooses the row at `index` or leaves it, or with `isRange` chooses all from the one before. */
    toggle(index: number, isRange: boolean, at: (index: number) => R | undefined) {
      const next = new Map(chosen());
      if (isRange) {
        for (let one = Math.min(anchor, index); one <= Math.max(anchor, index); one++) {
          const row = at(one);
          if (row) next.set(idOf(row), row);
        }
      } else {
        const row = at(index);
        if (!row) return;
        if (!next.delete(idOf(row))) next.set(idOf(row), row);
        anchor = index;
      }
      setChosen(next);
    },
  };
}
