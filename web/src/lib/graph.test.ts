import { expect, test } from "vitest";
import type { Status, TreeNode } from "../api/types";
import { drawingOf } from "./graph";

const node = (name: string, effective: Status = "Current", ...children: TreeNode[]): TreeNode =>
  ({ object: { group: "", kind: "Pod", namespace: "n", name }, effective, health: effective, status: effective, relation: "owned", children }) as TreeNode;
const names = (drawing: ReturnType<typeof drawingOf>) => drawing.nodes.map((one) => one.node.object?.name);

test("a parent stands in the middle of its children, and no two leaves in one row", () => {
  const { nodes, rows, depth } = drawingOf(node("a", "Current", node("b", "Current", node("c"), node("d")), node("e")), 500, false);
  expect(nodes.map(({ depth, row, parent }) => [depth, row, parent])).toEqual([[0, 1.25, -1], [1, 0.5, 0], [2, 0, 1], [2, 1, 1], [1, 2, 0]]);
  expect([rows, depth]).toEqual([3, 3]);
});

test("of a large tree what is not well is drawn first, and the rest is counted", () => {
  const many = Array.from({ length: 100 }, (_, index) => node(`p${index}`, "Current", node(`c${index}`)));
  const root = node("a", "Failed", ...many, node("bad", "InProgress", node("cause", "Failed")));
  const drawing = drawingOf(root, 10, false);
  expect(drawing.nodes).toHaveLength(10);
  expect(names(drawing)).toEqual(expect.arrayContaining(["a", "bad", "cause"]));
  expect(drawing.all).toBe(203);
  expect(drawing.nodes.reduce((sum, one) => sum + one.hidden, drawing.shown)).toBe(203);
});

test("the path to the cause goes by the worst", () => {
  const root = node("a", "Failed", node("slow", "InProgress", node("x", "InProgress")), node("bad", "Failed", node("cause", "Failed"), node("well")));
  const { nodes } = drawingOf(root, 500, false);
  expect(nodes.filter((one) => one.isOnPath).map((one) => one.node.object?.name)).toEqual(["a", "bad", "cause"]);
  expect(drawingOf(node("a", "Current", node("b")), 500, false).nodes.some((one) => one.isOnPath)).toBe(false);
});

test("the path to the cause stands above all others, and what is well below", () => {
  const root = node("a", "Failed", node("well"), node("slow", "InProgress"), node("bad", "Failed", node("fine"), node("cause", "Failed")));
  const rows = drawingOf(root, 500, false).nodes.map((one): [string | undefined, number] => [one.node.object?.name, one.row]);
  expect(rows.filter(([name]) => name !== "a").sort((a, b) => a[1] - b[1]).map(([name]) => name)).toEqual(["cause", "bad", "fine", "slow", "well"]);
});

test("what is not well alone leaves out what is", () => {
  const root = node("a", "Failed", node("well"), node("bad", "Failed"));
  expect(names(drawingOf(root, 500, true))).toEqual(["a", "bad"]);
});

test("12,000 objects are chosen and placed at once", () => {
  const root = node("a", "Failed", ...Array.from({ length: 120 }, (_, index) => node(`d${index}`, "Current", ...Array.from({ length: 99 }, (_, pod) => node(`p${index}-${pod}`)))));
  const drawing = drawingOf(root, 500, false);
  expect(drawing.nodes).toHaveLength(500);
  expect(drawing.all).toBe(1 + 120 * 100);
});

test("the cause is drawn however many others are not well", () => {
  const many = Array.from({ length: 600 }, (_, index) => node(`p${index}`, "InProgress"));
  const drawing = drawingOf(node("a", "Failed", node("slow", "InProgress", ...many), node("bad", "Failed", node("cause", "Failed"))), 500, false);
  expect(names(drawing)).toContain("cause");
});
