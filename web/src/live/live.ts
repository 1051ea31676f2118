// What the hub says of the present. Views say what they show, and one stream of all tabs brings its changes.
import { createEffect, createSignal, onCleanup } from "solid-js";
import type { ClusterCounts, StreamCounts, StreamFrame, StreamPage } from "../api/types";
import { endSession, resumeSession } from "../api/client";
import { heard } from "../lib/clock";
import type { ToTab, ToWorker } from "./messages";
import { createStream } from "./stream";

/** A hidden tab keeps its subscriptions this long, so that a glance elsewhere costs nothing. */
const HIDDEN_FOR = 15_000;

export type Link = "opening" | "live" | "away";
const [link, setLink] = createSignal<Link>("opening");
const [awaySince, setAwaySince] = createSignal<number>();
const [clusters, setClusters] = createSignal<ClusterCounts>();
const [counts, setCounts] = createSignal<StreamCounts>();
const [version, setVersion] = createSignal(0);
/** The state of the connection to the hub; the counts of the whole fleet; a number that grows when it changes. */
export { awaySince, clusters, counts, link, version };
export const hubAway = () => link() === "away";

interface Subscription {
  view: string;
  take: (page: StreamPage, isReset: boolean) => void;
}

const subscriptions = new Map<string, Subscription>([
  ["clusters", { view: "clusters", take: (page) => page.clusters && setClusters(page.clusters) }],
  ["fleet", { view: "counts", take: (page) => page.apps && setCounts(page.apps) }],
  ["version", { view: "changes", take: (page) => page.version != null && setVersion(page.version) }],
]);
let given = 0;

/** Follows `view` (as `apps?status=Failed`) while the caller's owner lives; it may change, and be undefined. */
export function follow(view: () => string | undefined, take: Subscription["take"]) {
  createEffect(() => {
    const wanted = view();
    if (wanted === undefined) return;
    const name = `s${++given}`;
    subscriptions.set(name, { view: wanted, take });
    tellViews();
    onCleanup(() => {
      subscriptions.delete(name);
      tellViews();
    });
  });
}

const take = {
  frame({ asOf, pages }: StreamFrame, isReset: boolean) {
    heard(asOf);
    for (const page of pages) subscriptions.get(page.name)?.take(page, isReset);
  },
  link(isLive: boolean) {
    if ((link() === "live") === isLive && link() !== "opening") return;
    setAwaySince(isLive ? undefined : Date.now());
    setLink(isLive ? "live" : "away");
  },
  refused: endSession,
};

/** Tells what this tab shows; undefined until the stream has begun. */
let send: ((views: [string, string][]) => void) | undefined;
let isAsleep = false;
let soon: ReturnType<typeof setTimeout> | undefined;

function tellViews() {
  clearTimeout(soon);
  soon = setTimeout(() => send?.(isAsleep ? [] : [...subscriptions].map(([name, { view }]) => [name, view])), 0);
}

function connectWorker(isNew: boolean): typeof send {
  const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: "taffrail" });
  const { port } = worker;
  const tell = (message: ToWorker) => port.postMessage(message);
  port.onmessage = ({ data }: MessageEvent<ToTab>) => {
    if (data.type === "frame") take.frame(data.frame, data.isReset);
    else if (data.type === "link") take.link(data.isLive);
    else if (data.type === "refused") take.refused();
    else resumeSession();
  };
  const lock = `taffrail-tab-${crypto.randomUUID()}`;
  // Held until the tab ends; the worker waits for it and then forgets the tab.
  void navigator.locks.request(lock, () => {
    tell({ type: "tab", lock });
    return new Promise(() => undefined);
  });
  if (isNew) tell({ type: "session" });
  return (views) => tell({ type: "views", views });
}

/** Begins to follow; `isNew` if this tab has opened a session, which then is that of all tabs. */
export function startLive(isNew: boolean) {
  if ("SharedWorker" in window && "locks" in navigator) send = connectWorker(isNew);
  else {
    // A browser without shared workers has a stream for each tab.
    const stream = createStream(take);
    send = (views) => stream.follow(new Map(views));
  }
  tellViews();
  let hidden: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.hidden) {
      hidden = setTimeout(() => { isAsleep = true; tellViews(); }, HIDDEN_FOR);
    } else if (isAsleep) {
      isAsleep = false;
      tellViews();
    }
  });
}
