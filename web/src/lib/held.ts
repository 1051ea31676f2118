// Items that keep their places while somebody points at their list, or has the focus in it.
import { createMemo, createSignal } from "solid-js";
import { movedRows } from "./order";

interface Held<T> {
  items: T[];
  /** The number of items that changed place, came or left since the order is held. */
  moved: number;
  isLoaded: boolean;
  round: number;
}

/** Tells of an element, by handlers to put on it, if the pointer or the focus is in it. */
export function createHold() {
  const [isPointed, setPointed] = createSignal(false);
  const [isFocused, setFocused] = createSignal(false);
  const leaves = (event: FocusEvent) => !(event.currentTarget as Element).contains(event.relatedTarget as Node | null);
  return {
    isHeld: () => isPointed() || isFocused(),
    handlers: {
      onPointerEnter: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
      onFocusIn: () => setFocused(true),
      onFocusOut: (event: FocusEvent) => leaves(event) && setFocused(false),
    },
  };
}

/**
 * Returns `items` in the order in which they were when `isHeld` became true, with their present values; those that have
 * gone stay at their place. The present order is taken when it is false again, and by `release`. Without items (undefined)
 * nothing is held.
 */
export function createHeld<T extends { id: string }>(items: () => T[] | undefined, isHeld: () => boolean) {
  const [round, setRound] = createSignal(0);
  const none: Held<T> = { items: [], moved: 0, isLoaded: false, round: 0 };
  const held = createMemo((before: Held<T>): Held<T> => {
    const now = items();
    if (!now) return { ...none, round: round() };
    if (!isHeld() || !before.isLoaded || before.round !== round()) return { items: now, moved: 0, isLoaded: true, round: round() };
    const byId = new Map(now.map((item) => [item.id, item]));
    const moved = movedRows(before.items.map((item) => item.id), now.map((item) => item.id));
    return { ...before, items: before.items.map((item) => byId.get(item.id) ?? item), moved };
  }, none);
  const present = createMemo(() => new Set(items()?.map((item) => item.id)));
  return {
    items: () => held().items,
    moved: () => held().moved,
    hasLeft: (id: string) => held().moved > 0 && !present().has(id),
    release: () => setRound((n) => n + 1),
  };
}
