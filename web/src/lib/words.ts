// The words for what the API's codes mean, as the command line prints them.
import type { Axis, ClusterRow, Delivery, FreshnessState, RelationDirection, RelationType, Status, SyncState } from "../api/types";

/** All statuses, the worst first. */
export const STATUSES: readonly Status[] = ["Failed", "NotFound", "Unknown", "Terminating", "InProgress", "Current"];

export const statusWord = (status: Status) => (status === "Current" ? "Ready" : status);

/** How many nodes of a cluster are ready: "2/3", of one that is not live "was 2/3"; nothing if nothing tells of its nodes. */
export function nodesWord(row: Pick<ClusterRow, "nodes" | "nodesUnobserved">, isLive: boolean): string | undefined {
  if (!row.nodes) return row.nodesUnobserved ? "Unknown" : undefined;
  return `${isLive ? "" : "was "}${row.nodes.ready}/${row.nodes.total}`;
}

export const FRESHNESS: readonly FreshnessState[] = ["live", "stale", "lost"];

export const AXES: readonly Axis[] = ["health", "sync", "source", "freshness", "check"];

export const SYNC_STATES: readonly SyncState[] = ["Failed", "OutOfSync", "Unknown", "Syncing", "Suspended", "Synced"];

const DELIVERIES: Record<Delivery, string> = {
  "flux-kustomization": "Kustomization",
  "flux-helmrelease": "HelmRelease",
  "argo-application": "Argo CD",
  "config-sync": "Config Sync",
  kpt: "kpt",
  porch: "Porch",
  helm: "Helm",
  label: "Labels",
  taffrail: "Taffrail",
};
export const DELIVERY_IDS = Object.keys(DELIVERIES) as Delivery[];
export const deliveryWord = (delivery: string) => DELIVERIES[delivery as Delivery] ?? delivery;

/** The freshness that a cluster had when this was the problem of an app in it. */
export const pastFreshness = (problem: string | null): FreshnessState => (problem === "lost" || problem === "stale" ? problem : "live");

/** A state such as `OutOfSync` or `ErrImagePull` as words within a sentence. */
export const spaced = (state: string) => state.replace(/([a-z])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`);

const RELATIONS: Record<RelationType, Record<RelationDirection, string>> = {
  dependsOn: { upstream: "depends on", downstream: "needed by" },
  createdBy: { upstream: "created by", downstream: "creates" },
  deliveredBy: { upstream: "delivered by", downstream: "delivers" },
  hostedBy: { upstream: "hosted by", downstream: "hosts" },
};

/** The relation of an app to another one, which is in this direction. */
export const relationWord = (type: RelationType, direction: RelationDirection) => RELATIONS[type][direction];
