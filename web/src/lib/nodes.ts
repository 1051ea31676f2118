// Nodes of the tree of an app.
import type { ObjectKey, TreeNode } from "../api/types";

export const nameOf = (node: TreeNode) => node.object?.name ?? node.app?.name ?? "";
export const kindOf = (node: TreeNode) => node.object?.kind ?? node.folded?.kind ?? "";
/** The object of a node in the cluster of the app; a copy, which does not change with the node. Apps may be declared elsewhere. */
export const objectOf = (node: TreeNode | undefined): ObjectKey | undefined => (node?.object && node.relation !== "app" ? { ...node.object } : undefined);
export const isWell = (node: TreeNode): boolean => node.effective === "Current" && !node.sync && node.children.every(isWell);
/** Tells of a node what its status does not. */
export const toldOf = (node: TreeNode) => [node.sync, node.syncMessage, node.message, node.note].filter(Boolean).join(" · ");
