// The last lines of the containers that the hub chooses: the failing ones if there are any.
import { For, Show } from "solid-js";
import { type AppRef, hub } from "../../api/client";
import { createAnswer } from "../../lib/answer";
import { fullName } from "../../lib/refs";
import { go, param, withQuery } from "../../lib/router";
import { count } from "../../lib/text";
import { Glyph } from "../../parts/Glyph";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Name, Text } from "../../parts/Text";

export default function Logs(props: { app: AppRef }) {
  const isPrevious = () => param("previous") === "1";
  const [answer, again] = createAnswer(
    () => ({ what: fullName(props.app), previous: isPrevious() }),
    ({ what, previous }, signal) => hub.logs({ what, previous, clusters: [props.app.cluster], tail: 100 }, signal),
  );
  return (
    <>
      <div class="log-tools">
        <label class="check"><input type="checkbox" checked={isPrevious()} onChange={(event) => go(withQuery({ previous: event.currentTarget.checked ? "1" : undefined }), { replace: true })} /> Previous run</label>
        <button type="button" class="button" onClick={again}>Read again</button>
      </div>
      <ErrorNote error={answer.error} what="Logs" retry={again} />
      <Show when={answer.data} fallback={<Show when={!answer.error}><Loading what={`${props.app.cluster}, which is asked for logs`} rows={4} /></Show>}>
        {(data) => (
          <>
            <For each={data().logs} fallback={<p class="muted">No container of it has a log.</p>}>
              {(log) => (
                <section class="container-log">
                  <h3 class="step-head"><Glyph status={log.subject.status} /> <Name value={log.subject.pod} /> <span class="muted">{log.subject.container}</span></h3>
                  <Show when={log.failure}>{(failure) => <p class="muted"><Text value={failure()} /></p>}</Show>
                  <Show when={log.lines.length} fallback={<Show when={!log.failure}><p class="muted">It has written nothing.</p></Show>}>
                    <div class="log-lines mono" tabIndex={0} role="group" aria-label={`Log of ${log.subject.container} in ${log.subject.pod}`}>
                      <For each={log.lines}>{(line) => <div><Text value={line} /></div>}</For>
                    </div>
                  </Show>
                </section>
              )}
            </For>
            <Show when={data().leftOut}><p class="muted grid-end">{count(data().leftOut, "well container")} left out.</p></Show>
          </>
        )}
      </Show>
    </>
  );
}
