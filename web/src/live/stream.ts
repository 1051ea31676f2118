// One event stream of the hub: opens it, notices its silence, and opens it again. Runs in a page or in a worker.
import type { StreamFrame } from "../api/types";

/** How long the hub may be silent before all that is shown counts as old. Each 16 s at least it sends `alive`. */
const SILENCE = 25_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
/** Subscriptions that change together, as when a view opens, cost one new stream. */
const TOGETHER = 40;
/** The hub takes no more in one stream. */
export const MOST_VIEWS = 20;

export interface StreamEvents {
  frame: (frame: StreamFrame, isReset: boolean) => void;
  /** The hub answers, or does not. */
  link: (isLive: boolean) => void;
  /** The hub refuses the session; nothing is tried any more until `follow` or `retry` is called. */
  refused: () => void;
}

export function createStream(events: StreamEvents) {
  let views: ReadonlyMap<string, string> = new Map();
  let source: EventSource | undefined;
  let pause = FIRST_PAUSE;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let watchdog: ReturnType<typeof setTimeout> | undefined;

  function stop() {
    source?.close();
    source = undefined;
    clearTimeout(timer);
    clearTimeout(watchdog);
  }
  function openIn(millis: number) {
    clearTimeout(timer);
    timer = setTimeout(open, millis);
  }
  function heard() {
    pause = FIRST_PAUSE;
    clearTimeout(watchdog);
    watchdog = setTimeout(lose, SILENCE);
    events.link(true);
  }
  function lose() {
    stop();
    events.link(false);
    openIn(pause);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
  function open() {
    stop();
    if (!views.size) return;
    const search = new URLSearchParams();
    for (const [name, view] of views) search.append("subscribe", `${name}:${view}`);
    const stream = (source = new EventSource(`/api/v1/stream?${search}`));
    // A request that is lost on its way gets no answer and no error.
    watchdog = setTimeout(lose, SILENCE);
    const take = (isReset: boolean) => (event: MessageEvent<string>) => {
      if (stream !== source) return;
      heard();
      events.frame(JSON.parse(event.data) as StreamFrame, isReset);
    };
    stream.addEventListener("reset", take(true));
    stream.addEventListener("frame", take(false));
    stream.addEventListener("alive", () => stream === source && heard());
    stream.onerror = () => {
      if (stream !== source) return;
      lose();
      void tellWhy();
    };
  }
  /** An event source does not say why it failed; a plain request does. */
  async function tellWhy() {
    const probe = await fetch("/api/v1/changes?limit=1").catch(() => undefined);
    if (probe?.status !== 401) return;
    stop();
    events.refused();
  }

  return {
    follow(next: ReadonlyMap<string, string>) {
      views = next;
      openIn(TOGETHER);
    },
    retry: () => openIn(0),
  };
}
