// Clusters that do not answer: since when, why, and what was last known of them.
import { For, Show } from "solid-js";
import { hub } from "../../api/client";
import { createAnswer } from "../../lib/answer";
import { createHeld } from "../../lib/held";
import { withQuery } from "../../lib/router";
import { count } from "../../lib/text";
import { statusWord } from "../../lib/words";
import { Age } from "../../parts/Age";
import { FreshGlyph } from "../../parts/Glyph";
import { Text } from "../../parts/Text";

export function LostClusters(props: { isHeld: () => boolean }) {
  const [answer] = createAnswer(
    () => ({ status: "Unknown", limit: 100 }),
    async (key, signal) => {
      const data = await hub.clusters(key, signal);
      return { items: data.items.filter((row) => row.freshness.state !== "live").map((row) => ({ ...row, id: row.name })) };
    },
    { every: 1000 },
  );
  const held = createHeld(() => answer.data?.items, props.isHeld);
  return (
    <Show when={held.items().length}>
      <section class="section">
        <h2 class="section-head">Silent clusters <span class="muted">{held.items().length}</span></h2>
        <ul class="entries">
          <For each={held.items()}>
            {(row) => (
              <li class="entry" data-severity="lost" data-left={held.hasLeft(row.id)}>
                <div class="entry-row">
                  <a class="entry-main" href={withQuery({ open: row.name }, "/clusters", new URLSearchParams())}>
                    <span class="entry-glyph"><FreshGlyph state={row.freshness.state} /></span>
                    <span class="entry-text">
                      <span class="entry-what">
                        <span class="strong"><Text value={row.name} /></span>
                        <span class="entry-state" data-severity="lost">{held.hasLeft(row.id) ? "over: " : ""}{row.freshness.state}</span>
                      </span>
                      <span class="entry-message"><Text value={row.message} /></span>
                      <span class="entry-where muted">
                        <Show when={row.freshness.observedAt} fallback="was never read">
                          its {count(row.apps, "app")} {row.apps === 1 ? "was" : "were"} last known as {statusWord(row.health)}{row.apps === 1 ? "" : " at worst"}
                        </Show>
                      </span>
                    </span>
                    <span class="entry-since muted"><Age since={row.freshness.observedAt} /></span>
                  </a>
                </div>
              </li>
            )}
          </For>
        </ul>
      </section>
    </Show>
  );
}
