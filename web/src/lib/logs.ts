// The lines of logs, read again and again: a browser has six connections to a hub that has no TLS, so that none can be held
// for each log that a tab follows.
import { batch, createEffect, createSignal, on, onCleanup } from "solid-js";
import { type ContainerLog, hub, HubError } from "../api/client";
import { hubAway } from "../live/live";
import { merged } from "./merged";

export interface LogsAsked {
  what: string;
  cluster: string;
  previous: boolean;
}

/** The lines of each log that are read first. */
const TAIL = 200;
/** The lines of each log that one reading brings at most after the first. */
const NEWER = 1000;
/** The time between two readings. */
const PAUSE = 2000;
/** The time by which a reading overlaps the one before it: clocks differ, and lines come late. */
const OVERLAP = 5000;

/** Reads the logs, and while the tab is visible and `isFollowed` is true also what is written from then on. */
export function createLogs(asked: () => LogsAsked, isFollowed: () => boolean) {
  const [logs, setLogs] = createSignal<ContainerLog[]>();
  const [leftOut, setLeftOut] = createSignal(0);
  const [error, setError] = createSignal<HubError>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let control = new AbortController();
  /** The moment at which the last successful reading began; 0 before the first. */
  let readAt = 0;

  async function read() {
    const own = control;
    const began = Date.now();
    const { what, cluster, previous } = asked();
    const isFirst = readAt === 0;
    const range = isFirst ? { tail: TAIL, sinceMillis: null } : { tail: NEWER, sinceMillis: began - readAt + OVERLAP };
    try {
      const answer = await hub.logs({ what, previous, clusters: [cluster], ...range }, own.signal);
      if (own.signal.aborted) return;
      readAt = began;
      batch(() => {
        setLogs((known) => (isFirst || !known ? answer.logs : merged(known, answer.logs)));
        setLeftOut(answer.leftOut);
        setError(undefined);
      });
    } catch (problem) {
      if (own.signal.aborted) return;
      setError(problem instanceof HubError ? problem : new HubError(-1, String(problem)));
    }
    wait();
  }
  function wait() {
    clearTimeout(timer);
    if (!isFollowed()) return;
    timer = setTimeout(() => (document.hidden || hubAway() ? wait() : void read()), PAUSE);
  }
  /** Ends what is being read; a reading that ends after this changes nothing. */
  function stop() {
    clearTimeout(timer);
    control.abort();
    control = new AbortController();
  }
  /** Reads anew from the beginning. */
  function again() {
    stop();
    readAt = 0;
    void read();
  }
  createEffect(on(() => JSON.stringify(asked()), () => {
    setLogs(undefined);
    again();
  }));
  createEffect(on(isFollowed, wait, { defer: true }));
  onCleanup(stop);
  return { logs, leftOut, error, again };
}
