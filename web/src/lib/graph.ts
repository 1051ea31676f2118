// A tree as a drawing from left to right: which nodes are drawn, and where.
import type { Status, TreeNode } from "../api/types";
import { isWell } from "./nodes";
import { STATUSES } from "./words";

export interface Placed {
  node: TreeNode;
  /** The number of the parent among the placed nodes; -1 for the root. */
  parent: number;
  depth: number;
  /** The row, in which a parent stands in the middle of its children. */
  row: number;
  /** The number of nodes below this one that are not drawn. */
  hidden: number;
  /** True from the root to the node that is the cause. */
  isOnPath: boolean;
}

export interface Drawing {
  nodes: Placed[];
  rows: number;
  depth: number;
  /** The number of objects that the drawn nodes stand for, and of the whole tree. */
  shown: number;
  all: number;
}

const rank = (status: Status) => STATUSES.indexOf(status);
const sizeOf = (node: TreeNode): number => node.children.reduce((sum, child) => sum + sizeOf(child), node.folded?.count ?? 1);

/** Nodes from the root down to the worst one that has no worse below it; none if all are well. */
function pathToCause(root: TreeNode): Set<TreeNode> {
  const path = new Set<TreeNode>();
  for (let node: TreeNode | undefined = isWell(root) ? undefined : root; node;) {
    path.add(node);
    const unwell: TreeNode[] = node.children.filter((child) => !isWell(child));
    node = unwell.sort((a, b) => rank(a.effective) - rank(b.effective))[0];
  }
  return path;
}

/** Chooses the nodes of `path`, and at most `most` in all: what is not well with all above it, then the others by their depth. */
function choose(root: TreeNode, path: Set<TreeNode>, most: number, isUnwellOnly: boolean): Set<TreeNode> {
  const chosen = new Set<TreeNode>([root, ...path]);
  const unwell = (node: TreeNode) => {
    for (const child of node.children) {
      if (chosen.size >= most) return;
      if (isWell(child)) continue;
      chosen.add(child);
      unwell(child);
    }
  };
  unwell(root);
  if (isUnwellOnly) return chosen;
  for (let level = [root]; level.length && chosen.size < most;) {
    const next = level.flatMap((node) => node.children);
    for (const node of next) if (chosen.size < most) chosen.add(node);
    level = next.filter((node) => chosen.has(node));
  }
  return chosen;
}

export function drawingOf(root: TreeNode, most: number, isUnwellOnly: boolean): Drawing {
  const path = pathToCause(root);
  const chosen = choose(root, path, most, isUnwellOnly);
  const nodes: Placed[] = [];
  let rows = 0;
  let deepest = 0;
  function place(node: TreeNode, parent: number, depth: number): Placed {
    const placed: Placed = { node, parent, depth, row: 0, hidden: 0, isOnPath: path.has(node) };
    const own = nodes.push(placed) - 1;
    deepest = Math.max(deepest, depth);
    // The reader begins at the top: the path to the cause stands there, then what else is not well.
    const first = (child: TreeNode) => (path.has(child) ? 0 : isWell(child) ? 2 : 1);
    const children = node.children.filter((child) => chosen.has(child)).sort((a, b) => first(a) - first(b));
    const shown = children.map((child) => place(child, own, depth + 1));
    placed.hidden = node.children.filter((child) => !chosen.has(child)).reduce((sum, child) => sum + sizeOf(child), 0);
    const [top, bottom] = [shown[0], shown.at(-1)];
    placed.row = top && bottom ? (top.row + bottom.row) / 2 : rows++;
    return placed;
  }
  place(root, -1, 0);
  const shown = nodes.reduce((sum, { node }) => sum + (node.folded?.count ?? 1), 0);
  return { nodes, rows, depth: deepest + 1, shown, all: sizeOf(root) };
}
