// The apps to which an app is related: what it depends on and what delivers it, and the apps of which it is that.
import { For, Show } from "solid-js";
import { type AppRef, hub } from "../../api/client";
import type { RelationRow } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { fullName, refOf, refText, rowId } from "../../lib/refs";
import { place, withQuery } from "../../lib/router";
import { count } from "../../lib/text";
import { deliveryWord, relationWord } from "../../lib/words";
import { StatusMark } from "../../parts/Marks";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Name, Text } from "../../parts/Text";

export default function Relations(props: { app: AppRef }) {
  const [answer, again] = createAnswer(
    () => fullName(props.app),
    async (name, signal) => {
      const data = await hub.detail({ view: "app", name, apps: { clusters: [props.app.cluster], namespace: null } }, signal);
      const detail = data.items[0]?.detail;
      const items = (detail?.relations ?? []).map((one) => ({ ...one, id: `${one.direction}/${one.type}/${rowId(one.app)}` }));
      return { items, leftOut: detail?.relationsLeftOut ?? 0 };
    },
    { every: 5000 },
  );
  const href = (one: RelationRow) => {
    const to = refOf(one.app);
    return place().path.startsWith("/app/") ? withQuery({ home: to.home }, `/app/${refText(to)}`) : withQuery({ app: refText(to), home: to.home });
  };
  return (
    <>
      <ErrorNote error={answer.error} what="The relations" retry={again} />
      <Show when={answer.data} fallback={<Show when={!answer.error}><Loading what={`${props.app.cluster}, which is asked for the app`} rows={4} /></Show>}>
        {(data) => (
          <>
            <ul class="log-list">
              <For each={data().items} fallback={<li class="lead-line">It is related to no other app.</li>}>
                {(one) => (
                  <li class="finding">
                    <p class="step-head"><span class="muted">{relationWord(one.type, one.direction)}</span>{" "}
                      <Show when={one.status !== "NotFound"} fallback={<Name value={one.app.name} class="strong" />}><a class="object-link" href={href(one)}><Name value={one.app.name} /></a></Show>
                      <span class="muted">{deliveryWord(one.app.delivery)} · <Text value={one.app.namespace} /> · <Text value={one.app.cluster} /></span>
                      <span class="grow" /><StatusMark health={one.status} effective={one.status} /></p>
                    <Show when={one.message}>{(message) => <p><Text value={message()} /></p>}</Show>
                  </li>
                )}
              </For>
            </ul>
            <Show when={data().leftOut}>{(more) => <p class="muted grid-end">and {count(more(), "more relation")}</p>}</Show>
          </>
        )}
      </Show>
    </>
  );
}
