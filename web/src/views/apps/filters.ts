// The filters of the list of apps: they are the address, the request and the command, in the same words.
import type { Params } from "../../api/client";
import { params, place } from "../../lib/router";

export const FILTERS = ["status", "problems", "sync", "delivery", "cluster", "cluster-selector", "namespace", "name", "selector", "suspended", "text"] as const;
export type FilterName = (typeof FILTERS)[number];
export type Filters = Partial<Record<FilterName, string[]>>;

export const FILTER_WORDS: Record<FilterName, string> = {
  status: "Status", problems: "Problem", sync: "Sync", delivery: "Delivery", cluster: "Cluster", "cluster-selector": "Cluster labels",
  namespace: "Namespace", name: "Name", selector: "Labels", suspended: "Suspended", text: "Text",
};

/** Filters that the API takes as one text with commas, the others as a parameter each. */
const JOINED = new Set<FilterName>(["status", "sync"]);

/** Filters that the API takes once. */
const SINGLE = new Set<FilterName>(["text", "selector", "cluster-selector", "suspended"]);

export function readFilters(): Filters {
  place();
  const all: Filters = {};
  for (const name of FILTERS) {
    const values = params(name).flatMap((value) => (JOINED.has(name) ? value.split(",") : [value])).filter(Boolean);
    if (values.length) all[name] = values;
  }
  return all;
}

/** The parameters of a request, without the filters in `leave`. */
export function toParams(filters: Filters, leave: readonly string[] = []): Params {
  const all: Params = {};
  for (const name of FILTERS) {
    const values = filters[name];
    if (!values || leave.includes(name)) continue;
    all[name] = JOINED.has(name) ? values.join(",") : SINGLE.has(name) ? values[0] : values;
  }
  return all;
}

/** The values of one filter for the address. */
export const toAddress = (name: FilterName, values: readonly string[]) =>
  JOINED.has(name) ? (values.length ? [values.join(",")] : []) : [...values];

export const GROUPS = { key: "App", cluster: "Cluster", namespace: "Namespace", delivery: "Delivery", status: "Status", sync: "Sync", problem: "Problem", source: "Source", home: "Home cluster", name: "Name" } as const;

/** The prefix of a grouping by the values of a label of the clusters. */
const CLUSTER_LABEL = "cluster-label:";

export const labelGroup = (label: string) => CLUSTER_LABEL + label;

/** The name of a grouping; undefined for one that there is not. */
export function groupTitle(groupBy: string): string | undefined {
  const label = groupBy.startsWith(CLUSTER_LABEL) ? groupBy.slice(CLUSTER_LABEL.length) : "";
  return label ? `Cluster ${label}` : GROUPS[groupBy as keyof typeof GROUPS];
}

/** The filter that selects the members of a group. */
const GROUP_FILTER: Partial<Record<string, FilterName>> = {
  key: "text", cluster: "cluster", namespace: "namespace", delivery: "delivery", status: "status", sync: "sync", name: "name",
};

export function groupFilter(groupBy: string, group: string, filters: Filters): Record<string, string> | undefined {
  if (groupBy.startsWith(CLUSTER_LABEL)) {
    // Clusters without the label and those with an empty value are one group, which no selector selects.
    if (!group) return undefined;
    const chosen = filters["cluster-selector"] ?? [];
    return { "cluster-selector": [...chosen, `${groupBy.slice(CLUSTER_LABEL.length)}=${group}`].join(",") };
  }
  const name = GROUP_FILTER[groupBy];
  if (!name || !group) return undefined;
  return { [name]: name === "status" && group === "Current" ? "Ready" : group };
}

export const SORTS = { status: "Status", since: "Since", name: "Name", cluster: "Cluster", delivery: "Delivery" } as const;
