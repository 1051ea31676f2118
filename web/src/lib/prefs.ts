// What is not in the address: the theme, what is folded, and whether single keys act.
import { createSignal } from "solid-js";

function stored<T extends string>(name: string, standard: T) {
  const load = () => {
    try {
      return (localStorage.getItem(`taffrail.${name}`) as T | null) ?? standard;
    } catch {
      return standard;
    }
  };
  const [value, set] = createSignal<T>(load());
  const save = (next: T) => {
    set(() => next);
    try {
      localStorage.setItem(`taffrail.${name}`, next);
    } catch {
      // Without storage it lasts as long as the tab.
    }
  };
  return [value, save] as const;
}

export type Theme = "auto" | "light" | "dark";
export const [theme, setTheme] = stored<Theme>("theme", "auto");
export const [rail, setRail] = stored<"wide" | "narrow">("rail", "wide");
export const [singleKeys, setSingleKeys] = stored<"on" | "off">("keys", "on");

const [narrow, setNarrow] = createSignal(false);
/** True on a screen too narrow for a table's columns. */
export { narrow };
const narrowQuery = matchMedia("(max-width: 700px)");
setNarrow(narrowQuery.matches);
narrowQuery.addEventListener("change", () => setNarrow(narrowQuery.matches));
