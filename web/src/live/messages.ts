// What tabs and the shared worker tell each other.
import type { StreamFrame } from "../api/types";

export type ToWorker =
  /** The tab is there while it holds the lock `name`, and shows these views. */
  | { type: "tab"; lock: string }
  | { type: "views"; views: [name: string, view: string][] }
  /** A tab has opened a session: what was refused may be asked again. */
  | { type: "session" };

export type ToTab =
  | { type: "frame"; frame: StreamFrame; isReset: boolean }
  | { type: "link"; isLive: boolean }
  | { type: "refused" }
  | { type: "session" };
