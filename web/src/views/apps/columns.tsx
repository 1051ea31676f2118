// The columns of the list of apps: which there are, and what their cells show.
import type { JSX } from "solid-js";
import type { AppRow } from "../../api/types";
import { param } from "../../lib/router";
import { number, shortRevision } from "../../lib/text";
import { deliveryWord } from "../../lib/words";
import { Age } from "../../parts/Age";
import { Name, Text } from "../../parts/Text";
import { SyncMark } from "../../parts/Marks";

export interface AppColumn {
  title: string;
  /** The width in the grid. */
  width: string;
  isNumber?: boolean;
  /** The order of the API by this column. */
  sort?: string;
  class?: string;
  cell: (row: AppRow) => JSX.Element;
}

/** Status and name, which every list has, stand before these. */
export const COLUMNS: Record<string, AppColumn> = {
  cluster: { title: "Cluster", width: "minmax(64px, 0.55fr)", sort: "cluster", cell: (row) => <Name value={row.cluster} /> },
  namespace: { title: "Namespace", width: "minmax(80px, 0.6fr)", class: "muted", cell: (row) => <Name value={row.namespace} /> },
  message: { title: "Message", width: "minmax(160px, 2.4fr)", cell: (row) => <span class="clip" classList={{ muted: !row.problem || row.problem.severity === "notice" }}><Text value={row.problem?.message ?? row.message} /></span> },
  since: { title: "For", width: "44px", isNumber: true, sort: "since", class: "muted", cell: (row) => <Age since={row.since} /> },
  sync: { title: "Sync", width: "104px", cell: (row) => <SyncMark state={row.sync.effective} /> },
  revision: { title: "Revision", width: "124px", cell: (row) => <span class="mono clip muted" title={row.sync.applied ?? ""}>{shortRevision(row.sync.applied)}</span> },
  desired: { title: "Wanted", width: "124px", cell: (row) => <span class="mono clip muted" title={row.sync.desired ?? ""}>{shortRevision(row.sync.desired)}</span> },
  success: { title: "Last success", width: "96px", isNumber: true, class: "muted", cell: (row) => <Age since={row.sync.lastSuccess} /> },
  objects: { title: "Objects", width: "72px", isNumber: true, cell: (row) => <span>{number(row.counts.Current)}/{number(row.objects)}</span> },
  home: { title: "Declared in", width: "minmax(64px, 0.55fr)", class: "muted", cell: (row) => <Name value={row.home} /> },
  delivery: { title: "Delivery", width: "104px", sort: "delivery", class: "muted", cell: (row) => <span class="clip">{deliveryWord(row.delivery)}</span> },
};

const USUAL = ["cluster", "message", "since", "sync", "revision", "delivery"];

/** The columns that the address names, in the order of the table above; undefined if it names none. */
const named = () => {
  const text = param("columns");
  if (text === undefined) return undefined;
  const wanted = text.split(",");
  return Object.keys(COLUMNS).filter((name) => wanted.includes(name));
};

export const areChosen = () => named() !== undefined;
export const shownColumns = () => named() ?? USUAL;

/** The value of the address with or without a column; undefined for the usual ones. */
export function withColumn(name: string): string | undefined {
  const shown = shownColumns();
  const next = Object.keys(COLUMNS).filter((one) => (one === name) !== shown.includes(one));
  return next.join() === USUAL.join() ? undefined : next.join(",");
}

/** The layout of a grid with the shown columns. */
export const gridColumns = () => ["112px", "minmax(140px, 1.1fr)", ...shownColumns().map((name) => COLUMNS[name]?.width ?? "1fr")].join(" ");
