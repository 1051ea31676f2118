// The one event stream of the page. Views say what they show; the stream is opened again when that changes.
import { createEffect, createSignal, onCleanup } from "solid-js";
import type { ClusterCounts, StreamCounts, StreamFrame, StreamPage } from "../api/types";
import { endSession, sessionEnded } from "../api/client";
import { heard } from "./clock";

/** How long the hub may be silent before all that is shown counts as old. Each 16 s at least it sends `alive`. */
const SILENCE = 25_000;
const LONGEST_PAUSE = 10_000;
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
let names = 0;

/** Follows `view` (as `apps?status=Failed`) while the caller's owner lives; it may change, and be undefined. */
export function follow(view: () => string | undefined, take: Subscription["take"]) {
  createEffect(() => {
    const wanted = view();
    if (wanted === undefined) return;
    const name = `s${++names}`;
    subscriptions.set(name, { view: wanted, take });
    reopenSoon();
    onCleanup(() => {
      subscriptions.delete(name);
      reopenSoon();
    });
  });
}

let source: EventSource | undefined;
let soon: ReturnType<typeof setTimeout> | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
let watchdog: ReturnType<typeof setTimeout> | undefined;
let pause = 500;

function reopenSoon(after = 40) {
  clearTimeout(soon);
  soon = setTimeout(open, after);
}

function heardFromHub() {
  clearTimeout(watchdog);
  watchdog = setTimeout(lose, SILENCE);
  if (link() !== "live") {
    setAwaySince(undefined);
    setLink("live");
  }
}

function lose() {
  source?.close();
  clearTimeout(watchdog);
  if (link() !== "away") {
    setAwaySince(Date.now());
    setLink("away");
  }
  clearTimeout(retry);
  retry = setTimeout(open, pause);
  pause = Math.min(pause * 2, LONGEST_PAUSE);
}

function open() {
  clearTimeout(soon);
  clearTimeout(retry);
  source?.close();
  if (sessionEnded() || document.hidden) return;
  const search = new URLSearchParams();
  for (const [name, { view }] of subscriptions) search.append("subscribe", `${name}:${view}`);
  const stream = new EventSource(`/api/v1/stream?${search}`);
  source = stream;
  const frame = (isReset: boolean) => (event: MessageEvent<string>) => {
    if (stream !== source) return;
    pause = 500;
    heardFromHub();
    const { asOf, pages } = JSON.parse(event.data) as StreamFrame;
    heard(asOf);
    for (const page of pages) subscriptions.get(page.name)?.take(page, isReset);
  };
  stream.addEventListener("reset", frame(true));
  stream.addEventListener("frame", frame(false));
  stream.addEventListener("alive", heardFromHub);
  stream.onerror = () => {
    if (stream !== source) return;
    stream.close();
    void tellWhy();
    lose();
  };
}

/** An event source does not say why it failed; a plain request does. */
async function tellWhy() {
  const probe = await fetch("/api/v1/changes?limit=1").catch(() => undefined);
  if (probe?.status === 401) endSession();
}

let hidden: ReturnType<typeof setTimeout> | undefined;
export function startLive() {
  open();
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (!document.hidden) {
      if (!source || source.readyState === EventSource.CLOSED) open();
      return;
    }
    hidden = setTimeout(() => {
      source?.close();
      clearTimeout(watchdog);
      clearTimeout(retry);
    }, HIDDEN_FOR);
  });
}
