import { For, Show } from "solid-js";
import { clusters, counts, hubAway } from "../live/live";
import { rail, setRail, setTheme, type Theme, theme } from "../lib/prefs";
import { place } from "../lib/router";
import { number } from "../lib/text";
import { Icon, type IconName } from "./Icon";
import { showHelp } from "./Help";

interface Entry {
  href: string;
  title: string;
  icon: IconName;
  keys: string;
  count?: () => number | undefined;
  isLoud?: boolean;
}

const ENTRIES: Entry[] = [
  { href: "/", title: "Attention", icon: "attention", keys: "g a", count: () => counts()?.problems, isLoud: true },
  { href: "/apps", title: "Apps", icon: "apps", keys: "g p", count: () => counts()?.total },
  { href: "/clusters", title: "Clusters", icon: "clusters", keys: "g c", count: () => { const all = clusters(); return all && all.live + all.stale + all.lost; } },
  { href: "/matrix", title: "Matrix", icon: "matrix", keys: "g m" },
  { href: "/search", title: "Search", icon: "search", keys: "g s" },
  { href: "/time", title: "Time", icon: "time", keys: "g t" },
];

const THEMES: Theme[] = ["auto", "light", "dark"];
const THEME_WORDS = { auto: "System theme", light: "Light theme", dark: "Dark theme" };

export function Rail() {
  const next = () => THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length] ?? "auto";
  return (
    <nav class="rail" aria-label="Views">
      <a class="brand" href="/" aria-label="Taffrail, needs attention">
        <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true"><path d="M2 7h16M5 7v7m5-7v7m5-7v7M2 14h16" /></svg>
        <span class="rail-word">Taffrail</span>
      </a>
      <ul class="rail-list">
        <For each={ENTRIES}>
          {(entry) => (
            <li>
              <a class="rail-link" href={entry.href} title={`${entry.title} (${entry.keys})`} aria-current={place().path === entry.href ? "page" : undefined}>
                <Icon name={entry.icon} />
                <span class="rail-word grow">{entry.title}</span>
                <Show when={entry.count?.()}>
                  {(n) => <span class="rail-count" data-loud={!!entry.isLoud && !hubAway()}>{number(n())}<span class="reader">{entry.isLoud ? " with problems" : ""}</span></span>}
                </Show>
              </a>
            </li>
          )}
        </For>
      </ul>
      <div class="rail-foot">
        <button type="button" class="rail-link plain" onClick={() => setTheme(next())} title={`${THEME_WORDS[theme()]}; switch to ${next()}`}>
          <Icon name="theme" /><span class="rail-word">{THEME_WORDS[theme()]}</span>
        </button>
        <button type="button" class="rail-link plain" onClick={showHelp} title="Keys (?)">
          <Icon name="keys" /><span class="rail-word grow">Keys</span><kbd class="rail-word" aria-hidden="true">?</kbd>
        </button>
        <button type="button" class="rail-link plain rail-fold" onClick={() => setRail(rail() === "wide" ? "narrow" : "wide")}
          aria-expanded={rail() === "wide"} title={rail() === "wide" ? "Fold the rail" : "Unfold the rail"}>
          <Icon name="fold" /><span class="rail-word">Fold</span>
        </button>
      </div>
    </nav>
  );
}
