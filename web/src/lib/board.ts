// What the board of the matrix shows: a column for each cluster, or, in blocks, for several that lie beside each other.
import type { FreshnessState, MatrixColumn, MatrixLegend, MatrixRow } from "../api/types";
import { plain } from "./text";
import { FRESHNESS, STATUSES, statusWord } from "./words";

/** The matrix as the hub answered, its clusters sorted by group and name. */
export interface MatrixData {
  columns: readonly MatrixColumn[];
  rows: readonly MatrixRow[];
  legend: ReadonlyMap<string, MatrixLegend>;
}

export interface BoardColumn {
  title: string;
  /** The value of the label by which clusters are grouped. */
  group: string | undefined;
  /** The best freshness of its clusters. */
  freshness: FreshnessState;
  /** The place in the matrix of its first cluster, and the number of its clusters. */
  first: number;
  clusters: number;
}

export interface BoardCell {
  /** The worst of the apps that the cell stands for. */
  meaning: MatrixLegend;
  apps: number;
  problems: number;
}

export interface BoardData {
  columns: readonly BoardColumn[];
  keys: readonly string[];
  isGrouped: boolean;
  isBlocks: boolean;
  at: (row: number, column: number) => BoardCell | undefined;
}

/** Text of a cluster without the label, which stands last. */
const NO_GROUP = "(none)";
const groupTitle = (group: string | null | undefined) => (group === "" ? NO_GROUP : (group ?? undefined));

/** Sorts the clusters of an answer by group, those without one last, and by name, with the cells of each row. */
export function sorted(columns: readonly MatrixColumn[], rows: readonly MatrixRow[], legend: MatrixData["legend"]): MatrixData {
  const names = new Intl.Collator(undefined, { numeric: true });
  const order = columns.map((_, place) => place).sort((a, b) => {
    const [one, other] = [columns[a], columns[b]];
    if (!one || !other) return 0;
    const groups = one.group === other.group ? 0 : !one.group ? 1 : !other.group ? -1 : names.compare(one.group, other.group);
    return groups || names.compare(one.cluster, other.cluster);
  });
  const isSorted = order.every((place, index) => place === index);
  return {
    columns: order.map((place) => columns[place]).filter((one) => one !== undefined),
    rows: isSorted ? rows : rows.map(({ key, cells }) => ({ key, cells: order.map((place) => cells[place] ?? ".").join("") })),
    legend,
  };
}

/** Counts the apps of a matrix, and those with a problem. */
export function countPairs({ rows, legend }: MatrixData): { pairs: number; problems: number } {
  const bad = new Set([...legend.values()].filter((one) => one.problem).map((one) => one.code.charCodeAt(0)));
  let [pairs, problems] = [0, 0];
  for (const { cells } of rows) {
    for (let place = 0; place < cells.length; place++) {
      const code = cells.charCodeAt(place);
      if (code === EMPTY) continue;
      pairs += 1;
      if (bad.has(code)) problems += 1;
    }
  }
  return { pairs, problems };
}

const EMPTY = ".".charCodeAt(0);

/** The parts of a board that are the same with and without blocks. */
const headings = ({ columns, rows }: MatrixData) => ({ keys: rows.map((row) => row.key), isGrouped: columns.some((one) => one.group !== undefined) });

/** A column for each cluster. */
export function single(data: MatrixData): BoardData {
  const cells = new Map([...data.legend].map(([code, meaning]) => [code, { meaning, apps: 1, problems: meaning.problem ? 1 : 0 }]));
  return {
    columns: data.columns.map(({ cluster, group, freshness }, first) => ({ title: cluster, group: groupTitle(group), freshness, first, clusters: 1 })),
    ...headings(data),
    isBlocks: false,
    at: (row, column) => cells.get(data.rows[row]?.cells[column] ?? "."),
  };
}

/** Divides the clusters into blocks, at most `most` of them unless there are more groups: no block crosses a group. */
function partition({ columns }: MatrixData, most: number): BoardColumn[] {
  const runs: { group: string | null | undefined; first: number; count: number }[] = [];
  columns.forEach(({ group }, place) => {
    const last = runs.at(-1);
    if (last && last.group === group) last.count += 1;
    else runs.push({ group, first: place, count: 1 });
  });
  // Each group may end with a block that is not full.
  const each = Math.max(1, Math.ceil(columns.length / Math.max(1, most - runs.length + 1)));
  const freshest = (part: readonly MatrixColumn[]) => FRESHNESS.find((one) => part.some(({ freshness }) => freshness === one)) ?? "lost";
  return runs.flatMap(({ group, first, count }) => {
    const per = Math.ceil(count / Math.ceil(count / each));
    return Array.from({ length: Math.ceil(count / per) }, (_, number) => {
      const from = first + number * per;
      const part = columns.slice(from, Math.min(first + count, from + per));
      const name = part[0]?.cluster ?? "";
      const title = part.length === 1 ? name : `${name} … ${part.at(-1)?.cluster ?? ""}`;
      return { title, group: groupTitle(group), freshness: freshest(part), first: from, clusters: part.length };
    });
  });
}

/** A column for several clusters, so that about `most` of them stand for all. */
export function blocks(data: MatrixData, most: number): BoardData {
  const columns = partition(data, most);
  // Of each code its rank, the worst first; those with a problem before those without, as the hub ranks apps of one key.
  const ranked = [...data.legend.values()].sort((a, b) => Number(b.problem) - Number(a.problem) || STATUSES.indexOf(a.effective) - STATUSES.indexOf(b.effective) || Number(a.freshness === "live") - Number(b.freshness === "live"));
  const ranks = new Uint8Array(256).fill(255);
  ranked.forEach((one, rank) => { ranks[one.code.charCodeAt(0)] = rank; });
  const bad = ranked.filter((one) => one.problem).length;
  const rowOf = (cells: string) => columns.map(({ first, clusters }): BoardCell | undefined => {
    let [worst, apps, problems] = [255, 0, 0];
    for (let place = first; place < first + clusters; place++) {
      const rank = ranks[cells.charCodeAt(place)] ?? 255;
      if (rank === 255) continue;
      apps += 1;
      if (rank < bad) problems += 1;
      if (rank < worst) worst = rank;
    }
    const meaning = ranked[worst];
    return meaning && { meaning, apps, problems };
  });
  // A row is put together when it is first shown.
  const rows: (BoardCell | undefined)[][] = [];
  return {
    columns,
    ...headings(data),
    isBlocks: columns.length < data.columns.length,
    at: (row, column) => (rows[row] ??= rowOf(data.rows[row]?.cells ?? ""))[column],
  };
}

/** Says a cell in words, for readers and tips. */
export function cellWords(cell: BoardCell | undefined): string {
  if (!cell) return "not there";
  const { meaning, apps, problems } = cell;
  if (apps > 1) {
    if (!problems) return meaning.effective === "Current" ? `${apps} apps are Ready` : `none of ${apps} has a problem, the worst is ${statusWord(meaning.effective)}`;
    return `${problems} of ${apps} ${problems === 1 ? "has a problem" : "have problems"}, the worst is ${statusWord(meaning.effective)}`;
  }
  if (meaning.freshness !== "live") return `was ${statusWord(meaning.health)}, ${meaning.freshness}`;
  return statusWord(meaning.effective) + (meaning.problem && meaning.effective === "Current" ? ", with another problem" : "");
}

/** The name of a column in words. */
export const columnWords = ({ title, group, clusters }: BoardColumn) =>
  plain(`${clusters > 1 ? `${clusters} clusters, ${title}` : title}${group === undefined ? "" : `, in ${group}`}`);
