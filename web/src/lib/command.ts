// The command of the terminal that shows the same as a view.
import type { AppRef } from "../api/client";
import { fullName } from "./refs";

const SAFE = /^[\w@%+=:,./-]+$/;

/** Quotes an argument for a POSIX shell. */
export const quote = (text: string) => (SAFE.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

const HOSTILE = /[\p{C}\u2028\u2029]/u;

/** True if no word could be taken for an option, and none has a character that acts in a terminal or deceives the eye. */
export const isPlain = (...names: string[]) => names.every((name) => !name.startsWith("-") && !HOSTILE.test(name));

const hubFlag = () => ["--hub", location.origin];

export function command(...parts: (string | undefined)[]): string {
  const words = parts.filter((part): part is string => part !== undefined && part !== "");
  return ["taffrail", ...words, ...hubFlag()].map(quote).join(" ");
}

/** The flags of `taffrail get` for the filters of a list; the text search exists in the hub alone. */
export function listFlags(filters: Record<string, readonly string[]>): string[] {
  const flag = (name: string, key: string) => (filters[key]?.length ? [name, filters[key].join(",")] : []);
  return [
    ...flag("--status", "status"),
    ...(filters["problems"]?.length ? [`--problems=${filters["problems"].join(",")}`] : []),
    ...flag("--sync", "sync"),
    ...flag("--delivery", "delivery"),
    ...flag("--cluster", "cluster"),
    ...flag("--cluster-selector", "cluster-selector"),
    ...flag("-n", "namespace"),
    ...flag("--selector", "selector"),
    ...(filters["suspended"]?.length ? ["--suspended"] : []),
    ...flag("--sort", "sort"),
  ];
}

const VERBS: Record<string, string> = { objects: "tree", graph: "tree", why: "explain", events: "events", history: "history", logs: "logs", trust: "trust" };

/** The command of one tab of an app, by the app's full name. */
export const appCommand = (ref: AppRef, tab: string) => command(VERBS[tab] ?? "app", fullName(ref));
