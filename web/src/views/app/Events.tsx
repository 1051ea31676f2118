// Warnings about the app's objects, the newest first.
import { For, Show } from "solid-js";
import { type AppRef, hub } from "../../api/client";
import { createAnswer } from "../../lib/answer";
import { objectHref } from "../../lib/objects";
import { fullName } from "../../lib/refs";
import { number } from "../../lib/text";
import { Age } from "../../parts/Age";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Name, Text } from "../../parts/Text";

export default function Events(props: { app: AppRef }) {
  const [answer, again] = createAnswer(
    () => fullName(props.app),
    async (name, signal) => {
      const data = await hub.events({ view: "events", name, since: null, perCluster: true, apps: { clusters: [props.app.cluster], namespace: null } }, signal);
      return { items: data.items.reverse().map((event) => ({ ...event, id: `${event.object.kind}/${event.object.name}/${event.reason}/${event.firstSeen ?? ""}` })) };
    },
    { every: 5000 },
  );
  return (
    <>
      <ErrorNote error={answer.error} what="The warnings" retry={again} />
      <Show when={answer.data} fallback={<Show when={!answer.error}><Loading what={`${props.app.cluster}, which is asked for warnings`} rows={4} /></Show>}>
        {(data) => (
          <ul class="log-list">
            <For each={data().items} fallback={<li class="muted">No warning is known about its objects.</li>}>
              {(event) => (
                <li class="log-row">
                  <span class="muted log-when"><Age since={event.lastSeen} /></span>
                  <div>
                    <p class="step-head"><span class="strong">{event.reason}</span> <span class="muted">{event.object.kind}</span> <a class="object-link" href={objectHref({ cluster: "cluster" in event ? event.cluster : props.app.cluster, object: event.object })}><Name value={event.object.name} /></a>
                      <Show when={event.count > 1}><span class="tag">{number(event.count)} times</span></Show>
                      <Show when={event.isGone}><span class="tag">object is gone</span></Show></p>
                    <p><Text value={event.message} /></p>
                  </div>
                </li>
              )}
            </For>
          </ul>
        )}
      </Show>
    </>
  );
}
