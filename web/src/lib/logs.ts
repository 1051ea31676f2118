// The lines of logs, read again and again: a browser has six connections to a hub that has no TLS, so that none can be held
// for each log that a tab follows.
import { createEffect, createSignal, on, onCleanup } from "solid-js";
import { type ContainerLog, hub, type HubError } from "../api/client";
import { hubAway } from "../live/live";
import { createAnswer } from "./answer";
import { merged } from "./merged";

export interface LogsAsked {
  what: string;
  cluster: string;
  previous: boolean;
}

/** The lines of each log that are read first. */
const TAIL = 200;
/** The time between two readings. */
const PAUSE = 2000;
/** How far a reading goes back before the one before it: clocks differ, and lines come late. */
const OVERLAP = 5000;

/** Reads the logs, and what is written from then on while the tab is visible and `isFollowed` is true. */
export function createLogs(asked: () => LogsAsked, isFollowed: () => boolean) {
  const read = ({ what, cluster, previous }: LogsAsked, sinceMillis: number | null, signal: AbortSignal) =>
    hub.logs({ what, previous, clusters: [cluster], tail: sinceMillis === null ? TAIL : 2 * TAIL, sinceMillis }, signal);
  let readAt = 0;
  const [answer, again] = createAnswer(asked, (key, signal) => {
    readAt = Date.now();
    return read(key, null, signal);
  });
  const [logs, setLogs] = createSignal<ContainerLog[]>();
  const [failure, setFailure] = createSignal<HubError>();
  createEffect(() => setLogs(answer.data?.logs as ContainerLog[] | undefined));

  let timer: ReturnType<typeof setTimeout> | undefined;
  let control = new AbortController();
  async function more() {
    const known = logs();
    if (!known || document.hidden || hubAway()) return wait();
    const began = Date.now();
    try {
      const { logs: newer } = await read(asked(), began - readAt + OVERLAP, control.signal);
      readAt = began;
      setLogs(merged(known, newer));
      setFailure(undefined);
    } catch (error) {
      if (control.signal.aborted) return;
      setFailure(error as HubError);
    }
    wait();
  }
  function wait() {
    clearTimeout(timer);
    timer = setTimeout(() => void more(), PAUSE);
  }
  function stop() {
    clearTimeout(timer);
    control.abort();
    control = new AbortController();
  }
  createEffect(on([() => JSON.stringify(asked()), isFollowed], ([, follows]) => {
    stop();
    if (follows) wait();
  }));
  onCleanup(stop);
  return { answer, again, logs, failure };
}
