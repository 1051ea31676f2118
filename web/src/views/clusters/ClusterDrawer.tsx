// One cluster: how it is read, which of its scopes are not live, and its apps.
import { For, Show } from "solid-js";
import { hub } from "../../api/client";
import { createAnswer } from "../../lib/answer";
import { command } from "../../lib/command";
import { go, withQuery } from "../../lib/router";
import { count, number } from "../../lib/text";
import { Age } from "../../parts/Age";
import { Bar, CountList } from "../../parts/Bar";
import { Drawer } from "../../parts/Drawer";
import { FreshMark } from "../../parts/Marks";
import { ErrorNote, Loading, Note, ViewCommand } from "../../parts/Notes";
import { Text } from "../../parts/Text";
import { nodesWord, statusWord } from "../../lib/words";
import { hubAway } from "../../live/live";

export function ClusterDrawer(props: { name: string }) {
  const [answer, again] = createAnswer(
    () => ({ cluster: props.name, limit: 1 }),
    (key, signal) => hub.clusters(key, signal),
    { every: 1000 },
  );
  const close = () => go(withQuery({ open: undefined }));
  const apps = () => withQuery({ cluster: props.name }, "/apps", new URLSearchParams());
  return (
    <Drawer label={`Cluster ${props.name}`} close={close} title={<h2 class="drawer-title"><Text value={props.name} /></h2>}>
      <ErrorNote error={answer.error} what={`Cluster ${props.name}`} retry={again} />
      <Show when={answer.data} fallback={<Loading what={`cluster ${props.name}`} rows={4} />}>
        {(data) => (
          <Show when={data().items[0]} fallback={<Note kind="quiet" title="The hub does not follow this cluster.">{data().missing[0]?.message}</Note>}>
            {(row) => (
              <div class="drawer-body">
                <p class="lead">
                  <FreshMark state={row().freshness.state} />
                  <Show when={row().freshness.state !== "live"} fallback={<span>{row().problems ? `${number(row().problems)} of ${count(row().apps, "app")} ${row().problems === 1 ? "has a problem" : "have problems"}.` : `All ${count(row().apps, "app")} are well.`}</span>}>
                    <span>It does not answer for <Age since={row().freshness.observedAt} />: <Text value={row().message} /></span>
                  </Show>
                </p>
                <ViewCommand text={command("get", "apps", "--cluster", row().name)} />
                <section class="block">
                  <h3>Apps <span class="muted">{number(row().apps)}</span></h3>
                  <Bar counts={row().counts} />
                  <CountList counts={row().counts} words />
                  <p><a class="button" href={apps()}>Show its apps</a></p>
                </section>
                <Show when={nodesWord(row(), row().freshness.state === "live" && !hubAway())}>
                  {(text) => (
                    <section class="block">
                      <h3>Nodes <span class="muted">{text()}</span></h3>
                      <Show when={row().nodesUnobserved}>{(why) => <p class="muted">They are not known: <Text value={why()} /></p>}</Show>
                      <Show when={row().nodes?.unready}>
                        {(node) => <p><span class="strong"><Text value={node().name} /></span> <span class="muted">{node().reason} for <Age since={node().since} /></span> <Text value={node().message ?? ""} /></p>}
                      </Show>
                    </section>
                  )}
                </Show>
                <Show when={row().managedAs?.length}>
                  <section class="block">
                    <h3>What management clusters say of it <span class="muted">{number((row().managedAs?.length ?? 0) + (row().managedAsLeftOut ?? 0))}</span></h3>
                    <ul class="scopes">
                      <For each={row().managedAs}>
                        {(it) => (
                          <li>
                            <span class="strong">{it.object.kind} <Text value={it.object.namespace ? `${it.object.namespace}/${it.object.name}` : it.object.name} /></span>{" "}
                            <span class="muted">of <Text value={it.cluster} />{it.unproven ? ", which only claims to stand for it" : ""}</span> {statusWord(it.status)} <Text value={it.message ?? ""} />
                          </li>
                        )}
                      </For>
                    </ul>
                    <Show when={row().managedAsLeftOut}>{(more) => <p class="muted">{number(more())} more are not listed.</p>}</Show>
                  </section>
                </Show>
                <section class="block">
                  <h3>How it is read</h3>
                  <dl class="facts">
                    <Show when={row().source}>{(source) => <Fact name="Known by" value={source() === "agent" ? "its agent" : `metrics (${source()})`} />}</Show>
                    <Show when={row().light}><Fact name="Reach" value="light: only what declares apps is read" /></Show>
                    <Fact name="Version" value={row().version} />
                    <Fact name="Identity" value={row().id} isMono />
                    <Show when={row().aliases?.length}><Fact name="Also called" value={row().aliases?.join(", ")} /></Show>
                    <Show when={row().twinOf}><Fact name="Same identity as" value={row().twinOf} /></Show>
                    <Show when={row().verified === false}><Fact name="Certificate" value="not verified" /></Show>
                    <Show when={row().reading}>
                      {(reading) => (
                        <>
                          <Fact name="Protocol" value={`${reading().protocol}, lists by ${reading().lists}`} />
                          <Fact name="Round trip" value={`at most ${(reading().roundTripMicros / 1000).toFixed(1)} ms`} />
                          <Fact name="Requests" value={reading().requests == null ? undefined : number(reading().requests ?? 0)} />
                          <Fact name="Watches" value={reading().scopes == null ? undefined : count(reading().scopes ?? 0, "scope")} />
                          <div><dt>Live for</dt><dd><Age since={reading().liveSince} /></dd></div>
                        </>
                      )}
                    </Show>
                  </dl>
                </section>
                <Show when={row().reading?.notLive?.length}>
                  <section class="block">
                    <h3>Scopes that are not live <span class="muted">{row().reading?.notLive?.length}</span></h3>
                    <ul class="scopes">
                      <For each={row().reading?.notLive}>
                        {(scope) => <li><span class="strong"><Text value={scope.scope} /></span> <span class="muted">{scope.state} for <Age since={scope.since} /></span> <Text value={scope.message ?? ""} /></li>}
                      </For>
                    </ul>
                  </section>
                </Show>
                <Show when={data().errors.length}>
                  <section class="block">
                    <h3>Errors <span class="muted">{data().errors.length}</span></h3>
                    <ul class="scopes"><For each={data().errors}>{(error) => <li><span class="strong"><Text value={error.scope} /></span> <span class="muted">{error.reason}</span> <Text value={error.message} /></li>}</For></ul>
                  </section>
                </Show>
              </div>
            )}
          </Show>
        )}
      </Show>
    </Drawer>
  );
}

export const Fact = (props: { name: string; value: string | null | undefined; isMono?: boolean }) => (
  <Show when={props.value}>{(value) => <div><dt>{props.name}</dt><dd classList={{ mono: !!props.isMono }}><Text value={value()} /></dd></div>}</Show>
);
