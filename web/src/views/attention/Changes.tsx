// What changed lately, the latest first; equal changes at one moment are one line.
import { For, Show } from "solid-js";
import { hub } from "../../api/client";
import type { AppChange, PairState } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { refOf, refText } from "../../lib/refs";
import { withQuery } from "../../lib/router";
import { number } from "../../lib/text";
import { pastFreshness, spaced, statusWord } from "../../lib/words";
import { Age } from "../../parts/Age";
import { Glyph, SyncGlyph } from "../../parts/Glyph";
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

interface Words {
  axis: "health" | "sync" | "problem";
  from: string;
  to: string;
}

/** The words for what changed: the health if that did, else the sync, else the worst problem. */
export function changeWords(change: Pick<AppChange, "before" | "after">): Words {
  const { before, after } = change;
  const health: Words = { axis: "health", from: before ? wordOf(before) : "new", to: wordOf(after) };
  if (!before || !after || health.from !== health.to) return health;
  if (before.sync !== after.sync) return { axis: "sync", from: spaced(before.sync), to: spaced(after.sync) };
  return { axis: "problem", from: before.problem ?? "none", to: after.problem ?? "none" };
}

/** The mark of a change, on the axis that changed. */
export function ChangeGlyph(props: { change: Pick<AppChange, "before" | "after"> }) {
  const after = () => props.change.after;
  return (
    <Show when={after()} fallback={<Glyph status="NotFound" />}>
      {(state) => (
        <Show when={changeWords(props.change).axis !== "health"} fallback={<Glyph status={state().effective} freshness={pastFreshness(state().problem)} />}>
          <SyncGlyph state={changeWords(props.change).axis === "problem" ? (state().problem ? "OutOfSync" : "Synced") : state().sync} />
        </Show>
      )}
    </Show>
  );
}

/** The words of a change after its axis, which is left out of the health. */
export const ChangeWords = (props: { change: Pick<AppChange, "before" | "after"> }) => {
  const words = () => changeWords(props.change);
  return <>{words().axis === "health" ? "" : `${words().axis} `}{words().from} → {words().to}</>;
};

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
              {(line) => (
                  <li>
                    <a class="change" href={href(line.change)}>
                      <ChangeGlyph change={line.change} />
                      <span class="change-what">
                        <span class="clip"><span class="strong"><Text value={line.change.name} /></span> <span class="muted"><Text value={line.change.cluster} /></span>
                          <Show when={line.count > 1}><span class="muted"> and {number(line.count - 1)} more</span></Show></span>
                        <span class="muted clip"><ChangeWords change={line.change} /></span>
                      </span>
                      <span class="muted"><Age since={line.change.at} /></span>
                    </a>
                  </li>
              )}
            </For>
          </ul>
        </section>
      )}
    </Show>
  );
}
