import { createRoot, createSignal } from "solid-js";
import { expect, it } from "vitest";
import { createHeld } from "./held";

const rows = (text: string) => [...text].map((id) => ({ id, value: text }));

it("keeps the order while it is held, and takes values and the number of moved items", () => {
  createRoot((dispose) => {
    const [items, setItems] = createSignal<ReturnType<typeof rows> | undefined>();
    const [isHeld, setHeld] = createSignal(true);
    const held = createHeld(items, isHeld);
    const shown = () => held.items().map((item) => item.id).join("");
    // What is read first is shown, wherever the pointer is.
    setItems(rows("abc"));
    expect([shown(), held.moved()]).toEqual(["abc", 0]);
    setItems(rows("cab"));
    expect([shown(), held.moved(), held.items()[0]?.value]).toEqual(["abc", 1, "cab"]);
    setItems(rows("cxa"));
    expect([shown(), held.hasLeft("b"), held.hasLeft("a")]).toEqual(["abc", true, false]);
    held.release();
    expect([shown(), held.moved(), held.hasLeft("b")]).toEqual(["cxa", 0, false]);
    setItems(rows("ax"));
    setHeld(false);
    expect([shown(), held.moved()]).toEqual(["ax", 0]);
    setItems(undefined);
    expect(shown()).toBe("");
    dispose();
  });
});
