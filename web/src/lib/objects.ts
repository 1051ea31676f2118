// Names of objects in addresses and commands: CLUSTER/group/Kind/namespace/name. Clusters found in Secrets have slashes in
// their names, the other four parts never, so the text is read from its end.
import type { ObjectKey } from "../api/types";
import { withQuery } from "./router";

export interface ObjectRef {
  cluster: string;
  object: ObjectKey;
}

export const objectText = ({ cluster, object: { group, kind, namespace, name } }: ObjectRef) => [cluster, group, kind, namespace, name].join("/");

export function parseObject(text: string): ObjectRef | undefined {
  const parts = text.split("/");
  const [group = "", kind = "", namespace = "", name = ""] = parts.splice(-4);
  return parts.length && kind && name ? { cluster: parts.join("/"), object: { group, kind, namespace, name } } : undefined;
}

/** The address of the view of an object. */
export const objectHref = (ref: ObjectRef, tab?: string) => withQuery({ tab }, `/object/${objectText(ref)}`, new URLSearchParams());

/** Kinds whose Pods have logs. */
const WITH_LOGS = new Set(["/Pod", "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "batch/Job", "batch/CronJob"]);
export const hasLogs = ({ group, kind }: ObjectKey) => WITH_LOGS.has(`${group}/${kind}`);

/** Kinds that live in no namespace and own objects that do. */
const OF_CLUSTER = new Set(["/Node", "/Namespace", "/PersistentVolume"]);

interface OwnerReference {
  apiVersion?: unknown;
  kind?: unknown;
  name?: unknown;
}

/** The owners that an object names in its metadata. */
export function ownersOf(body: unknown, { cluster, object }: ObjectRef): ObjectRef[] {
  const references = (body as { metadata?: { ownerReferences?: unknown } } | null)?.metadata?.ownerReferences;
  if (!Array.isArray(references)) return [];
  return references.flatMap(({ apiVersion, kind, name }: OwnerReference) => {
    if (typeof apiVersion !== "string" || typeof kind !== "string" || typeof name !== "string") return [];
    const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
    const namespace = OF_CLUSTER.has(`${group}/${kind}`) ? "" : object.namespace;
    return [{ cluster, object: { group, kind, namespace, name } }];
  });
}
