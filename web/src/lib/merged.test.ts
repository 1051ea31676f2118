import { expect, test } from "vitest";
import type { ContainerLog } from "../api/client";
import { merged } from "./merged";

const log = (pod: string, ...lines: [string, string][]): ContainerLog => ({
  subject: { pod, container: "app" } as ContainerLog["subject"],
  lines: lines.map(([at, text]) => ({ at, text })),
  failure: undefined,
});
const at = (second: string) => `2026-01-01T00:00:${second}Z`;
const texts = (logs: ContainerLog[]) => logs.map((one) => one.lines.map((line) => line.text));

test("only lines after the last known one are added", () => {
  const known = [log("a", [at("01"), "one"], [at("02.5"), "two"])];
  const newer = [log("a", [at("02.5"), "two"], [at("02.45"), "late"], [at("02.50"), "same moment"], [at("03"), "three"])];
  expect(texts(merged(known, newer))).toEqual([["one", "two", "same moment", "three"]]);
});

test("a log that is not read this time stays, and a new one is added", () => {
  const merge = merged([log("a", [at("01"), "one"])], [log("b", [at("02"), "two"])]);
  expect(texts(merge)).toEqual([["one"], ["two"]]);
});

test("lines that were not read leave a mark", () => {
  const known = [log("a", [at("01"), "one"])];
  const many = Array.from({ length: 1000 }, (_, index): [string, string] => [`2026-01-01T00:01:00.${String(index).padStart(9, "0")}Z`, `line ${index}`]);
  expect(merged(known, [log("a", ...many)])[0]?.lines[1]).toMatchObject({ text: "line 0", isAfterGap: true });
  expect(merged(known, [log("a", ...many.slice(0, 10))])[0]?.lines[1]?.isAfterGap).toBeUndefined();
});

test("a log without news stays the same object, so that nothing is drawn again", () => {
  const known = [log("a", [at("01"), "one"])];
  expect(merged(known, [log("a", [at("01"), "one"])])[0]).toBe(known[0]);
});
