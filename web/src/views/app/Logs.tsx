// The last lines of the containers that the hub chooses, the failing ones if there are any, and what they write from now on.
import { createEffect, createSignal, For, Index, on, Show } from "solid-js";
import type { ContainerLog } from "../../api/client";
import { createLogs } from "../../lib/logs";
import { go, param, withQuery } from "../../lib/router";
import { count, exact } from "../../lib/text";
import { Glyph } from "../../parts/Glyph";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Name, Text } from "../../parts/Text";

export default function Logs(props: { name: string; cluster: string }) {
  const isPrevious = () => param("previous") === "1";
  const isFollowed = () => !isPrevious() && param("follow") !== "0";
  const { logs, leftOut, error, again } = createLogs(() => ({ what: props.name, cluster: props.cluster, previous: isPrevious() }), isFollowed);
  const toggle = (name: string, value: string | undefined) => go(withQuery({ [name]: value }), { replace: true });
  return (
    <>
      <div class="log-tools">
        <label class="check"><input type="checkbox" checked={isFollowed()} disabled={isPrevious()} onChange={(event) => toggle("follow", event.currentTarget.checked ? undefined : "0")} /> Follow</label>
        <label class="check"><input type="checkbox" checked={isPrevious()} onChange={(event) => toggle("previous", event.currentTarget.checked ? "1" : undefined)} /> Previous run</label>
        <Show when={!isFollowed()} fallback={<span class="muted">read again every 2 s</span>}><button type="button" class="button" onClick={again}>Read again</button></Show>
      </div>
      <ErrorNote error={error()} what="Logs" retry={again} />
      <Show when={logs()} fallback={<Show when={!error()}><Loading what={`${props.cluster}, which is asked for logs`} rows={4} /></Show>}>
        <Index each={logs()} fallback={<p class="muted">No container of it has a log.</p>}>
          {(log) => (
            <section class="container-log">
              <h3 class="step-head"><Glyph status={log().subject.status} /> <Name value={log().subject.pod} /> <span class="muted">{log().subject.container}</span></h3>
              <Show when={log().failure}>{(why) => <p>No log: <Text value={why()} /></p>}</Show>
              <Show when={log().lines.length} fallback={<Show when={!log().failure}><p class="muted">It has written nothing.</p></Show>}>
                <Lines log={log()} />
              </Show>
            </section>
          )}
        </Index>
        <Show when={leftOut()}>{(well) => <p class="muted grid-end">{count(well(), "well container")} left out.</p>}</Show>
      </Show>
    </>
  );
}

/** The lines of a log. It stays at its end until the reader scrolls up, and then counts what came meanwhile. */
function Lines(props: { log: ContainerLog }) {
  let box!: HTMLDivElement;
  const [unseen, setUnseen] = createSignal(0);
  const isAtEnd = () => box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
  const toEnd = () => { box.scrollTop = box.scrollHeight; setUnseen(0); };
  let wasAtEnd = true;
  createEffect(on(() => props.log.lines, (lines, before) => {
    if (wasAtEnd) return toEnd();
    const last = before?.at(-1);
    setUnseen((n) => n + (last ? lines.length - 1 - lines.lastIndexOf(last) : lines.length));
  }));
  function onScroll() {
    wasAtEnd = isAtEnd();
    if (wasAtEnd) setUnseen(0);
  }
  return (
    <>
      <div class="log-lines mono" ref={box} tabIndex={0} role="group" aria-label={`Log of ${props.log.subject.container} in ${props.log.subject.pod}`} onScroll={onScroll}>
        <For each={props.log.lines}>{(line) => <div data-gap={line.isAfterGap} title={line.at ? exact(line.at) : undefined}><Text value={line.text} /></div>}</For>
      </div>
      <Show when={unseen()}>{(n) => <p><button type="button" class="button" onClick={toEnd}>{count(n(), "new line")} below</button></p>}</Show>
    </>
  );
}
