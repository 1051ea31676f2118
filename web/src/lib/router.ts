// The address is the state: a view reads its filters from here, and changes them here alone.
import { createSignal } from "solid-js";

export interface Place {
  path: string;
  query: URLSearchParams;
}

const read = (): Place => ({ path: decodePath(location.pathname), query: new URLSearchParams(location.search) });

function decodePath(path: string): string {
  try {
    // Names of some objects have these, which `decodeURI` leaves as they are.
    return decodeURI(path).replaceAll("%23", "#").replaceAll("%3F", "?");
  } catch {
    return path;
  }
}

const [place, setPlace] = createSignal<Place>(read());
export { place };

const inner = new Set<() => void>();
/** Calls `done` after each change of the address, whoever made it. */
export const afterMove = (done: () => void) => inner.add(done);

function moved() {
  setPlace(read());
  for (const done of inner) done();
}
addEventListener("popstate", moved);

export function go(to: string, options: { replace?: boolean } = {}) {
  if (to === location.pathname + location.search) return;
  history[options.replace ? "replaceState" : "pushState"](null, "", to);
  moved();
}

/** Values for parameters of the address; undefined or an empty list removes one. */
export type Changes = Record<string, string | readonly string[] | undefined>;

/** The present address with other values for some parameters; all others stay. */
export function withQuery(changes: Changes, path = place().path, from = place().query): string {
  const search = new URLSearchParams(from);
  for (const [name, value] of Object.entries(changes)) {
    search.delete(name);
    for (const one of value === undefined ? [] : typeof value === "string" ? [value] : value) search.append(name, one);
  }
  // Commas and slashes may stand in a query, and addresses are read by people.
  const text = search.toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%21", "!");
  return encodeURI(path).replaceAll("#", "%23").replaceAll("?", "%3F") + (text ? `?${text}` : "");
}

export const param = (name: string) => place().query.get(name) ?? undefined;
export const params = (name: string) => place().query.getAll(name);

/** Makes links within the page change the view alone. */
export function takeLinks() {
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest?.("a[href]") as HTMLAnchorElement | null;
    if (!link || link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
