import { For, Show } from "solid-js";
import type { FreshnessState } from "../api/types";
import { sessionEnded } from "../api/client";
import { clusters, hubAway, link } from "../live/live";
import { go, params, place, withQuery } from "../lib/router";
import { number } from "../lib/text";
import { FRESHNESS } from "../lib/words";
import { FreshGlyph } from "./Glyph";
import { Icon } from "./Icon";
import { Search } from "./Search";
import { Text } from "./Text";

/** The views that show chosen clusters alone. */
const SCOPED = ["/", "/apps", "/matrix", "/time"];

/** The scope of the view, the search, and how fresh the fleet is. */
export function TopBar() {
  const scope = () => (SCOPED.includes(place().path) ? params("cluster") : []);
  const without = (cluster: string) => withQuery({ cluster: scope().filter((one) => one !== cluster) });
  return (
    <header class="top">
      <div class="scope">
        <Show when={scope().length} fallback={<span class="muted">All clusters</span>}>
          <For each={scope().slice(0, 4)}>
            {(cluster) => (
              <button type="button" class="chip" data-on="true" aria-label={`Remove cluster ${cluster} from the scope`} onClick={() => go(without(cluster))}>
                <span class="clip"><Text value={cluster} /></span><Icon name="close" size={10} />
              </button>
            )}
          </For>
          <Show when={scope().length > 4}><span class="muted">and {scope().length - 4} more</span></Show>
        </Show>
      </div>
      <Search />
      <Fresh />
    </header>
  );
}

function Fresh() {
  const words = () => {
    if (link() === "opening") return "Opening the live stream";
    return hubAway() ? "The hub is away: nothing is live" : "Freshness of the clusters; list those that are not live";
  };
  const n = (state: FreshnessState) => clusters()?.[state] ?? 0;
  return (
    <a class="fresh" href="/clusters?status=Unknown" title={words()} data-link={link()}>
      <Show when={!hubAway()} fallback={<span class="mark" data-fresh="lost"><FreshGlyph state="lost" /> {sessionEnded() ? "no session" : "hub away"}</span>}>
        <For each={FRESHNESS}>
          {(state) => (
            <span class="mark" data-fresh={state} data-none={n(state) === 0}>
              <FreshGlyph state={state} /><span class="fresh-word">{state}</span><span class="num">{number(n(state))}</span>
            </span>
          )}
        </For>
      </Show>
      <span class="reader"> clusters; list those that are not live</span>
    </a>
  );
}
