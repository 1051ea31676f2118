// The one table of keys. Views add their own while they are shown; `?` prints all that act now.
import { createSignal, onCleanup } from "solid-js";
import { singleKeys } from "./prefs";

export interface Key {
  /** One key, or two that are pressed one after the other: `g a`. */
  keys: string;
  what: string;
  act: () => void;
}

export interface KeyGroup {
  title: string;
  keys: Key[];
}

const [groups, setGroups] = createSignal<KeyGroup[]>([]);
export { groups as keyGroups };

/** Adds keys while the caller's owner lives; later ones win over earlier ones. */
export function useKeys(title: string, keys: Key[]) {
  const group = { title, keys };
  setGroups((all) => [...all, group]);
  onCleanup(() => setGroups((all) => all.filter((one) => one !== group)));
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

const PREFIX_FOR = 1200;
let prefix = "";
let prefixAt = 0;

function onKey(event: KeyboardEvent) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target)) return;
  // Escape and Enter are no single keys in the sense of WCAG 2.1.4: they always act.
  if (singleKeys() === "off" && event.key.length === 1) return;
  // Within an open dialog only the dialog's own keys act.
  if (document.querySelector("dialog[open]")) return;
  if ((event.key === "Enter" || event.key === " ") && event.target instanceof Element && event.target.closest("a, button, summary")) return;
  const pressed = prefix && Date.now() - prefixAt < PREFIX_FOR ? `${prefix} ${event.key}` : event.key;
  prefix = "";
  const all = groups().flatMap((group) => group.keys).reverse();
  const found = all.find((key) => key.keys === pressed);
  if (found) {
    event.preventDefault();
    found.act();
  } else if (all.some((key) => key.keys.startsWith(`${event.key} `))) {
    prefix = event.key;
    prefixAt = Date.now();
  }
}

export const startKeys = () => document.addEventListener("keydown", onKey);
