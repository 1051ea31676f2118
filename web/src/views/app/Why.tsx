// The cause chain, from the symptom down to the root; what changed before; what to run next.
import { For, Show } from "solid-js";
import { hub } from "../../api/client";
import type { CauseStep, Change, Explanation } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { objectHref } from "../../lib/objects";
import { shortRevision } from "../../lib/text";
import { Age } from "../../parts/Age";
import { Copy } from "../../parts/Copy";
import { Glyph } from "../../parts/Glyph";
import { ErrorNote, Loading, Note } from "../../parts/Notes";
import { Name, Text } from "../../parts/Text";

/** The sentence for what has no chain of causes. */
function settled({ effective, health, problems }: Explanation): string {
  if (effective === health) return problems?.length ? "Its objects are ready; see what else is in the way above." : "Nothing is wrong with it.";
  return `Nothing was wrong with ${problems?.length ? "its objects" : "it"} when it was last seen.`;
}

/** The explanation of the app or object that commands call `name`. */
export default function Why(props: { name: string; cluster: string }) {
  const [answer, again] = createAnswer(
    () => props.name,
    async (name, signal) => {
      const data = await hub.explain({ view: "explain", names: [name], clusters: [props.cluster], namespace: null, contexts: true, logs: false, perCluster: true }, signal);
      return { explanation: data.items[0]?.explanation, differences: data.items[0]?.differences, errors: data.errors ?? [] };
    },
    { every: 5000 },
  );
  const why = () => answer.data?.explanation;
  return (
    <>
      <ErrorNote error={answer.error} what="The explanation" retry={again} />
      <Show when={answer.data} fallback={<Show when={!answer.error}><Loading what={`${props.cluster}, which is asked for the cause`} rows={4} /></Show>}>
        <Show when={why()} fallback={
          <For each={answer.data?.errors.slice(0, 1)} fallback={<p class="muted">There is nothing to explain.</p>}>
            {(error) => <Note kind="warn" title="The explanation could not be read."><Text value={error.error.message} /></Note>}
          </For>
        }>
          {(data) => (
            <div class="why">
              <Show when={data().chain.length} fallback={
                <div><p class="lead-line">{settled(data())}</p><p class="muted why-message"><Text value={data().message} /></p></div>
              }>
                <ol class="chain">
                  <For each={data().chain}>{(step, index) => <Step step={step} cluster={props.cluster} isLast={index() === data().chain.length - 1} />}</For>
                </ol>
              </Show>
              <Show when={data().changed?.length}>
                <section>
                  <h3 class="section-head">Changed before</h3>
                  <ul class="before"><For each={data().changed}>{(change) => <Before change={change} />}</For></ul>
                </section>
              </Show>
              <Show when={data().doubts?.length}>
                <section>
                  <h3 class="section-head">Reasons to doubt</h3>
                  <ul class="before"><For each={data().doubts}>{(doubt) => <li><span class="strong">{doubt.reason}</span> <Text value={doubt.message} /></li>}</For></ul>
                </section>
              </Show>
              <Show when={data().next.length}>
                <section>
                  <h3 class="section-head">Next</h3>
                  <For each={data().next}>{(line) => <Copy text={line} label="Copy the next command" shown />}</For>
                </section>
              </Show>
            </div>
          )}
        </Show>
      </Show>
    </>
  );
}

function Step(props: { step: CauseStep; cluster: string; isLast: boolean }) {
  const step = () => props.step;
  return (
    <li class="step" data-last={props.isLast} data-status={step().status}>
      <span class="step-glyph"><Glyph status={step().status} size={14} /></span>
      <div class="step-text">
        <p class="step-head">
          <span class="muted">{step().object.kind}</span> <a class="object-link" href={objectHref({ cluster: props.cluster, object: step().object })}><Name value={step().object.name} class="strong" /></a>
          <span class="step-reason">{step().reason}</span>
          <Show when={props.isLast}><span class="tag">cause</span></Show>
          <span class="grow" /><span class="muted"><Age since={step().since} /></span>
        </p>
        <p class="step-message"><Text value={step().message} /></p>
        <Show when={step().facts?.length}>
          <details class="cover"><summary>{step().facts?.length} facts</summary><ul><For each={step().facts}>{(fact) => <li><Text value={fact} /></li>}</For></ul></details>
        </Show>
      </div>
    </li>
  );
}

const WHAT = { image: "image", template: "Pod template", created: "created", spec: "spec", metadata: "labels or annotations", config: "configuration", node: "node", quota: "quota", revision: "revision" };

function Before(props: { change: Change }) {
  const change = () => props.change;
  const value = (text: string | null | undefined) => shortRevision(text);
  return (
    <li class="before-row">
      <span class="muted before-when"><Age since={change().when} suffix=" ago" /></span>
      <span>
        <span class="strong">{WHAT[change().what]}</span> <span class="muted">of {change().object.kind}</span> <Text value={change().object.name} />
        <Show when={change().by}><span class="muted"> by <Text value={change().by ?? ""} /></span></Show>
        <Show when={change().from || change().to}>
          <span class="before-values mono"><Text value={value(change().from) || "none"} /> → <Text value={value(change().to) || "none"} /></span>
        </Show>
        <Show when={change().fields?.length}><span class="before-values muted"><Text value={change().fields?.join(", ") ?? ""} /></span></Show>
      </span>
    </li>
  );
}
