// What changed lately, the latest first; equal changes at one moment are one line.
import { For, Show } from "solid-js";
import { hub } from "../../api/client";
import type { AppChange, PairState } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { refOf, refText } from "../../lib/refs";
import { withQuery } from "../../lib/router";
import { number } from "../../lib/text";
import { spaced, statusWord } from "../../lib/words";
import { Age } from "../../parts/Age";
import { Glyph } from "../../parts/Glyph";
import { Text } from "../../parts/Text";

const READ = 60;
const SHOWN = 14;

interface Line {
  id: string;
  change: AppChange;
  count: number;
}

function wordOf(state: PairState | null | undefined): string {
  if (!state) return "gone";
  if (state.effective === "Unknown" && state.problem) return `${state.problem}, was ${statusWord(state.health)}`;
  return statusWord(state.effective);
}

/** The words for what changed: the health if that did, else the sync. */
export function changeWords(change: Pick<AppChange, "before" | "after">): { from: string; to: string } {
  const { before, after } = change;
  const health = { from: before ? wordOf(before) : "new", to: wordOf(after) };
  if (!before || !after || health.from !== health.to) return health;
  if (before.sync !== after.sync) return { from: spaced(before.sync), to: spaced(after.sync) };
  return { from: before.problem ?? "no problem", to: after.problem ?? "no problem" };
}

function lines(changes: AppChange[]): Line[] {
  const all: Line[] = [];
  for (const change of changes) {
    const { from, to } = changeWords(change);
    const last = all.at(-1);
    const key = `${change.at.slice(0, 19)}|${change.cluster}|${from}|${to}`;
    if (last && last.id.startsWith(key)) last.count += 1;
    else all.push({ id: `${key}|${change.key}`, change, count: 1 });
  }
  return all;
}

export function Changes(props: { scope: string[] }) {
  const [answer] = createAnswer(
    () => ({ cluster: props.scope, limit: READ }),
    async (key, signal) => ({ items: lines((await hub.changes(key, signal)).items) }),
    { every: 2000 },
  );
  const href = (change: AppChange) => withQuery({ app: refText(refOf(change)), home: refOf(change).home, tab: "history" });
  return (
    <Show when={answer.data}>
      {(data) => (
        <section class="aside-section">
          <h2 class="section-head">Changed lately</h2>
          <ul class="changes">
            <For each={data().items.slice(0, SHOWN)} fallback={<li class="muted">Nothing since the hub began to run.</li>}>
              {(line) => {
                const words = () => changeWords(line.change);
                return (
                  <li>
                    <a class="change" href={href(line.change)}>
                      <Show when={line.change.after} fallback={<Glyph status="NotFound" />}>
                        {(after) => <Glyph status={after().effective} freshness={after().problem === "lost" ? "lost" : after().problem === "stale" ? "stale" : undefined} />}
                      </Show>
                      <span class="change-what">
                        <span class="clip"><span class="strong"><Text value={line.change.name} /></span> <span class="muted"><Text value={line.change.cluster} /></span>
                          <Show when={line.count > 1}><span class="muted"> and {number(line.count - 1)} more</span></Show></span>
                        <span class="muted clip">{words().from} → {words().to}</span>
                      </span>
                      <span class="muted"><Age since={line.change.at} /></span>
                    </a>
                  </li>
                );
              }}
            </For>
          </ul>
        </section>
      )}
    </Show>
  );
}
