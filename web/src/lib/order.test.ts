import { describe, expect, it } from "vitest";
import { movedRows } from "./order";

const moved = (before: string, now: string) => movedRows([...before], [...now]);

describe("rows that changed place", () => {
  it("counts one row that moved as one, however many it shifts", () => {
    expect(moved("abcdefgh", "habcdefg")).toBe(1);
    expect(moved("abcdefgh", "bcdefgha")).toBe(1);
  });
  it("counts a swap of neighbours as one and a reversal as all but one", () => {
    expect(moved("abcd", "bacd")).toBe(1);
    expect(moved("abcd", "dcba")).toBe(3);
  });
  it("counts rows that come and go", () => {
    expect(moved("abc", "abcd")).toBe(1);
    expect(moved("abc", "ab")).toBe(1);
    expect(moved("abc", "xab")).toBe(1);
    expect(moved("abc", "abc")).toBe(0);
    expect(moved("", "abc")).toBe(3);
  });
});
