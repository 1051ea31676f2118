// The objects that a search for KIND/NAME names in one cluster, whether or not an app has them.
import { createSignal, For, Show } from "solid-js";
import { hub } from "../../api/client";
import { createAnswer } from "../../lib/answer";
import { objectHref } from "../../lib/objects";
import { go, param, withQuery } from "../../lib/router";
import { number } from "../../lib/text";
import { statusWord } from "../../lib/words";
import { type Choice, Menu } from "../../parts/Menu";
import { Glyph } from "../../parts/Glyph";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Name, Text } from "../../parts/Text";

/** Clusters among which one is chosen; of more, one is reached by its own view. */
const MOST_CLUSTERS = 200;

/** The object that a text names, as commands take it: `deploy/web`, `deployments.apps/web`. */
export const namedObject = (text: string) => (/^[A-Za-z][\w.-]*\/[\w.:-]+$/.test(text) ? text : undefined);

export function NamedObjects(props: { name: string }) {
  const [clusters, setClusters] = createSignal<Choice[]>();
  const [note, setNote] = createSignal<string>();
  const cluster = () => param("in") || undefined;
  async function read() {
    const known = await hub.clusters({ limit: MOST_CLUSTERS, sort: "name" }).catch(() => undefined);
    if (!known) return setNote("The hub did not say which there are.");
    setClusters(known.items.map(({ name }) => ({ value: name, label: name })));
    setNote(known.total > known.items.length ? `${number(known.total - known.items.length)} more: add in=CLUSTER to the address` : undefined);
  }
  const [answer, again] = createAnswer(
    () => { const at = cluster(); return at ? { name: props.name, at } : undefined; },
    async ({ name, at }, signal) => {
      const found = await hub.object({ view: "object", name, namespace: null, allNamespaces: true, clusters: [at] }, signal);
      return { rows: found.items, errors: found.errors ?? [] };
    },
  );
  return (
    <section class="section">
      <h2 class="section-head">Objects <Show when={answer.data}>{(data) => <span class="muted">{number(data().rows.length)}</span>}</Show></h2>
      <ul class="entries">
      <li class="entry named-objects">
        <span><Text value={props.name} /> in</span>
        <Menu label={cluster() ? "cluster" : "which cluster?"} isSingle chosen={cluster() ? [cluster() ?? ""] : []} choices={clusters()} onOpen={() => void read()} note={note()}
          choose={(value) => go(withQuery({ in: value }), { replace: true })} />
      </li>
      <ErrorNote error={answer.error} what={props.name} retry={again} />
      <Show when={cluster() && !answer.data && !answer.error}><Loading what={`${cluster() ?? ""}, which is asked for it`} rows={1} /></Show>
      <For each={answer.data?.rows}>
        {(row) => (
          <li class="entry">
            <a class="result" href={objectHref({ cluster: row.cluster, object: row.object })}>
              <span class="mark"><Glyph status={row.effective} freshness={row.freshness.state} /><Name value={row.object.name} class="strong" /></span>
              <span>{statusWord(row.effective)}</span>
              <span class="muted num">{row.object.kind}<Show when={row.object.namespace}>, <Text value={row.object.namespace} /></Show></span>
            </a>
          </li>
        )}
      </For>
      <For each={answer.data?.errors}>{(error) => <li class="entry muted"><Text value={error.error.message} /></li>}</For>
      </ul>
    </section>
  );
}
