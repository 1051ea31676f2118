// Reasons to doubt what is said of the app, the worst first, and what was checked for them.
import { For, Show } from "solid-js";
import { type AppRef, hub } from "../../api/client";
import { createAnswer } from "../../lib/answer";
import { fullName } from "../../lib/refs";
import { count } from "../../lib/text";
import { Age } from "../../parts/Age";
import { Copy } from "../../parts/Copy";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Text } from "../../parts/Text";

export default function Trust(props: { app: AppRef }) {
  const [answer, again] = createAnswer(
    () => fullName(props.app),
    async (name, signal) => {
      const data = await hub.trust({ view: "trust", name, perCluster: true, contexts: true, categories: [], apps: { clusters: [props.app.cluster], namespace: null } }, signal);
      return { items: data.items.map((one) => ({ ...one, id: `${one.reason}/${one.scope}` })), checked: data.checked[0] };
    },
    { every: 10_000 },
  );
  return (
    <>
      <ErrorNote error={answer.error} what="The reasons to doubt" retry={again} />
      <Show when={answer.data} fallback={<Show when={!answer.error}><Loading what={`${props.app.cluster}, which is asked for signs against its status`} rows={4} /></Show>}>
        {(data) => (
          <>
            <ul class="log-list">
              <For each={data().items} fallback={<li class="lead-line">No sign speaks against what is said of it.</li>}>
                {(finding) => (
                  <li class="finding" data-severity={finding.severity}>
                    <p class="step-head"><span class="strong">{finding.reason}</span> <span class="muted"><Text value={finding.scope} /></span> <span class="tag">{finding.severity}</span>
                      <span class="grow" /><span class="muted"><Age since={finding.since} /></span></p>
                    <p><Text value={finding.message} /></p>
                    <For each={finding.next}>{(line) => <Copy text={line} label="Copy the next command" shown />}</For>
                  </li>
                )}
              </For>
            </ul>
            <Show when={data().checked}>
              {(checked) => <p class="muted grid-end">Checked: {count(checked().objects, "declared object")}, {count(checked().pods, "Pod")} and {count(checked().leases, "Lease")} of <Text value={props.app.cluster} />.</p>}
            </Show>
          </>
        )}
      </Show>
    </>
  );
}
