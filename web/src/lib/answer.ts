// An answer of the hub that a view shows: it is kept while a newer one is read, so that nothing flickers.
import { createEffect, createSignal, on, onCleanup, untrack } from "solid-js";
import { createStore, reconcile } from "solid-js/store";
import { HubError } from "../api/client";
import { link, version } from "../live/live";

export interface Answer<T> {
  /** The last answer to the present question; undefined before the first one. */
  data: T | undefined;
  error: HubError | undefined;
  loading: boolean;
}

interface Options {
  /** The least time between two readings that changes of the fleet cause; undefined never reads again for them. */
  every?: number;
}

/** The time after which a question is asked again that the hub did not answer. */
export const AGAIN_AFTER = 5000;

/**
 * Reads `ask` for the question `key`, again for each other one, and again when the fleet has changed. An undefined key
 * asks nothing. Items that have an `id` keep their identity, and with it their place in the document.
 */
export function createAnswer<K, T extends object>(
  key: () => K | undefined,
  ask: (key: K, signal: AbortSignal) => Promise<T>,
  options: Options = {},
): [Answer<T>, () => void] {
  const [answer, setAnswer] = createStore<Answer<T>>({ data: undefined, error: undefined, loading: false });
  const [again, setAgain] = createSignal(0);
  let running: AbortController | undefined;
  let asked: string | undefined;
  let readAt = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function read(wanted: K) {
    running?.abort();
    clearTimeout(timer);
    const control = (running = new AbortController());
    const name = JSON.stringify(wanted);
    if (name !== asked) setAnswer({ data: undefined, error: undefined });
    asked = name;
    setAnswer("loading", true);
    readAt = Date.now();
    try {
      const data = await ask(wanted, control.signal);
      if (control.signal.aborted) return;
      setAnswer("data", reconcile(data as never, { key: "id", merge: true }));
      setAnswer({ error: undefined, loading: false });
    } catch (error) {
      if (control.signal.aborted) return;
      const known = error instanceof HubError ? error : new HubError(-1, String(error));
      // What was known stays on the screen while the hub is away.
      setAnswer({ error: known, loading: false, ...(known.status === 0 ? {} : { data: undefined }) });
      if (known.status === 0) timer = setTimeout(() => setAgain((n) => n + 1), AGAIN_AFTER);
    }
    if (running === control) running = undefined;
  }

  createEffect(() => {
    again();
    const wanted = key();
    if (wanted === undefined) {
      running?.abort();
      asked = undefined;
      setAnswer({ data: undefined, error: undefined, loading: false });
    } else void untrack(() => read(wanted));
  });

  const { every } = options;
  if (every !== undefined) {
    createEffect(
      on(
        [version, link],
        () => {
          const wanted = untrack(key);
          if (wanted === undefined || link() === "away" || running) return;
          clearTimeout(timer);
          timer = setTimeout(() => void read(wanted), Math.max(0, readAt + every - Date.now()));
        },
        { defer: true },
      ),
    );
  }
  onCleanup(() => {
    running?.abort();
    clearTimeout(timer);
  });
  return [answer, () => setAgain((n) => n + 1)];
}
