// What is declared, what runs, and what stands in the way.
import { For, Show } from "solid-js";
import type { AppRow, CheckAnswer } from "../../api/types";
import { number, shortRevision } from "../../lib/text";
import { spaced } from "../../lib/words";
import { Age } from "../../parts/Age";
import { Bar, CountList } from "../../parts/Bar";
import { SyncMark } from "../../parts/Marks";
import { Text } from "../../parts/Text";
import { Fact } from "../clusters/ClusterDrawer";

/** The severity in whose colours a result is shown; that of true has none. */
const SEVERITIES: Record<CheckAnswer, string> = { false: "error", nodata: "notice", true: "" };

const ANSWERS: Record<CheckAnswer, string> = { false: "false", nodata: "has no data", true: "true" };

export function Sections(props: { row: AppRow }) {
  const row = () => props.row;
  const sync = () => row().sync;
  const isBehind = () => sync().desired && sync().applied && sync().desired !== sync().applied;
  return (
    <div class="sections">
      <section class="block">
        <h2>Declared</h2>
        <dl class="facts">
          <div><dt>Revision</dt><dd class="mono revision-value" title={sync().desired ?? ""}><span class="clip">{shortRevision(sync().desired) || <span class="muted">not known</span>}</span></dd></div>
          <Fact name={row().source?.kind ?? "Source"} value={row().source?.url ?? row().source?.name} />
          <Fact name="Path" value={row().source?.path} />
          <Fact name="Follows" value={row().source?.reference} />
          <Show when={row().home !== row().cluster}><Fact name="Declared in" value={row().home} /></Show>
        </dl>
      </section>
      <section class="block">
        <h2>Running</h2>
        <dl class="facts">
          <div><dt>Revision</dt><dd class="mono revision-value" title={sync().applied ?? ""}><span class="clip">{shortRevision(sync().applied) || <span class="muted">not known</span>}</span><Show when={isBehind()}><span class="tag">behind</span></Show></dd></div>
          <div><dt>Sync</dt><dd><SyncMark state={sync().effective} /></dd></div>
          <Show when={sync().lastSuccess}><div><dt>Last success</dt><dd><Age since={sync().lastSuccess} suffix=" ago" /></dd></div></Show>
          <div><dt>Objects</dt><dd class="objects-value"><span>{number(row().objects)}</span><CountList counts={row().counts} /></dd></div>
        </dl>
        <Bar counts={row().counts} />
      </section>
      <section class="block">
        <h2>In the way <Show when={row().problems?.length}><span class="muted">{row().problems?.length}</span></Show></h2>
        <ul class="problems">
          <For each={row().problems ?? []} fallback={<li class="muted">Nothing.</li>}>
            {(problem) => (
              <li class="problem" data-severity={problem.severity}>
                <span class="problem-axis">{problem.axis} {spaced(problem.state).toLowerCase()}</span>
                <span class="muted"><Age since={problem.since} /></span>
                <span class="problem-message"><Text value={problem.message} /></span>
              </li>
            )}
          </For>
        </ul>
      </section>
      <Show when={row().checks?.length}>
        <section class="block">
          <h2>Checks <span class="muted">{row().checks?.length}</span></h2>
          <ul class="problems">
            <For each={row().checks ?? []}>
              {(check) => (
                <li class="problem" data-severity={SEVERITIES[check.result]}>
                  <span class="problem-axis"><Text value={check.name} /> {ANSWERS[check.result]}</span>
                  <span class="muted"><Age since={check.observedAt} suffix=" ago" /></span>
                  <span class="problem-message">
                    <Show when={check.value !== undefined && !check.message}>{check.value}</Show>
                    <Text value={check.message ?? ""} />
                  </span>
                </li>
              )}
            </For>
          </ul>
        </section>
      </Show>
    </div>
  );
}
