import { describe, expect, it } from "vitest";
import type { MatrixColumn, MatrixLegend } from "../api/types";
import { blocks, cellWords, countPairs, single, sorted } from "./board";

const meaning = (code: string, effective: MatrixLegend["effective"], problem = false): MatrixLegend => ({ code, health: effective, effective, freshness: "live", problem });
const legend = new Map([meaning("0", "Current"), meaning("1", "Current", true), meaning("2", "Failed", true), meaning("3", "InProgress")].map((one) => [one.code, one]));
const column = (cluster: string, group?: string): MatrixColumn => (group === undefined ? { cluster, freshness: "live" } : { cluster, freshness: "live", group });

describe("the board of the matrix", () => {
  it("sorts clusters by group and name, with their cells", () => {
    const columns = [column("us-1", "us"), column("x", ""), column("eu-10", "eu"), column("eu-9", "eu")];
    const data = sorted(columns, [{ key: "a", cells: "0123" }], legend);
    expect(data.columns.map((one) => one.cluster)).toEqual(["eu-9", "eu-10", "us-1", "x"]);
    expect(data.rows[0]?.cells).toBe("3201");
    expect(single(data).columns.map((one) => one.group)).toEqual(["eu", "eu", "us", "(none)"]);
    expect(countPairs(data)).toEqual({ pairs: 4, problems: 2 });
  });

  it("divides clusters into blocks that show the worst of them, and how many have problems", () => {
    const columns = Array.from({ length: 10 }, (_, number) => column(`c-${number}`));
    const data = sorted(columns, [{ key: "a", cells: "0000120.3." }, { key: "b", cells: ".........." }], legend);
    const board = blocks(data, 5);
    expect(board.columns.map((one) => [one.first, one.clusters])).toEqual([[0, 2], [2, 2], [4, 2], [6, 2], [8, 2]]);
    expect(board.at(0, 2)).toMatchObject({ apps: 2, problems: 2, meaning: { effective: "Failed" } });
    expect([0, 2, 3, 4].map((place) => cellWords(board.at(0, place)))).toEqual(["2 apps are Ready", "2 of 2 have problems, the worst is Failed", "Ready", "InProgress"]);
    expect(cellWords(board.at(1, 0))).toBe("not there");
    expect(board.isBlocks).toBe(true);
    expect(blocks(data, 20).isBlocks).toBe(false);
  });

  it("lets no block cross a group, however many there are", () => {
    const columns = [...Array.from({ length: 7 }, (_, number) => column(`a-${number}`, "a")), column("b-1", "b"), column("c-1", "c")];
    const board = blocks(sorted(columns, [{ key: "a", cells: "0".repeat(9) }], legend), 4);
    expect(board.columns.map((one) => [one.group, one.clusters])).toEqual([["a", 4], ["a", 3], ["b", 1], ["c", 1]]);
    expect(blocks(sorted(columns, [], legend), 1).columns.map((one) => one.group)).toEqual(["a", "b", "c"]);
  });
});
