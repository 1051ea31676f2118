// Names of apps in addresses: CLUSTER/DELIVERY/NAMESPACE/NAME, as commands take them. Clusters found in Secrets have
// slashes in their names, the other three parts never, so the text is read from its end.
import type { AppRef } from "../api/client";
import type { AppRow } from "../api/types";

export function parseRef(text: string | undefined, home?: string): AppRef | undefined {
  const parts = text?.split("/") ?? [];
  const [delivery, namespace, name] = parts.splice(-3);
  if (!parts.length || !delivery || !name) return undefined;
  return { cluster: parts.join("/"), delivery, namespace: namespace === "-" ? "" : (namespace ?? ""), name, home };
}

export const refText = (ref: AppRef) => [ref.cluster, ref.delivery, ref.namespace || "-", ref.name].join("/");

type Named = Pick<AppRow, "cluster" | "delivery" | "namespace" | "name" | "home">;

export const refOf = (row: Named): AppRef => ({
  cluster: row.cluster,
  delivery: row.delivery,
  namespace: row.namespace,
  name: row.name,
  home: row.home === row.cluster ? undefined : row.home,
});

/** A text that only this app in this cluster has. */
export const rowId = (row: Named) => `${row.home}|${row.cluster}|${row.delivery}|${row.namespace}|${row.name}`;

/** The full name by which commands and questions take the app, with its home where another cluster declares it. */
export const fullName = (ref: AppRef) => refText(ref) + (ref.home ? `@${ref.home}` : "");
