// One object of a cluster, whole: why it is as it is, its YAML, events, logs and actions.
import { createEffect, createMemo, createSignal, For, lazy, Match, Show, Suspense, Switch } from "solid-js";
import { hub, HubError } from "../../api/client";
import type { ObjectRow } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { command, isPlain, quote } from "../../lib/command";
import { useKeys } from "../../lib/keys";
import { hasLogs, objectHref, type ObjectRef, objectText, ownersOf } from "../../lib/objects";
import { go, param, withQuery } from "../../lib/router";
import { number } from "../../lib/text";
import { Age } from "../../parts/Age";
import { Copy } from "../../parts/Copy";
import { StatusMark } from "../../parts/Marks";
import { ErrorNote, Loading, Note, ViewCommand } from "../../parts/Notes";
import { Tabs } from "../../parts/Tabs";
import { Text } from "../../parts/Text";
import { Yaml } from "../../parts/Yaml";
import Logs from "../app/Logs";
import Why from "../app/Why";

const ObjectAction = lazy(() => import("../operation/ObjectAction"));

const VERBS: Record<string, string> = { yaml: "object", events: "object", why: "explain", logs: "logs" };

export default function ObjectPage(props: { subject: ObjectRef }) {
  const name = createMemo(() => objectText(props.subject));
  // What was read last stays when the object is gone: its Pod's last words are what one looks for then.
  let last: { text: string; row: ObjectRow } | undefined;
  const [answer, again] = createAnswer(
    name,
    async (text, signal) => {
      const known = last?.text === text ? last.row : undefined;
      try {
        const data = await hub.object({ view: "object", name: text, namespace: null, allNamespaces: false, clusters: [] }, signal);
        const [row] = data.items;
        if (row) last = { text, row };
        const errors = data.errors ?? [];
        return { row: row ?? known, errors, isGone: !row && !!known && !errors.length, isUnread: !row && !!known && errors.length > 0 };
      } catch (error) {
        if (known && error instanceof HubError && error.status === 404) return { row: known, errors: [], isGone: true, isUnread: false };
        throw error;
      }
    },
    { every: 5000 },
  );
  const [isActing, setActing] = createSignal(false);
  const object = () => props.subject.object;
  const tabs = () => [
    { name: "yaml", title: "YAML" },
    { name: "why", title: "Why" },
    { name: "events", title: "Events" },
    ...(hasLogs(object()) ? [{ name: "logs", title: "Logs" }] : []),
  ];
  const tab = () => tabs().find((one) => one.name === param("tab"))?.name ?? "yaml";
  const choose = (chosen: string) => go(withQuery({ tab: chosen === "yaml" ? undefined : chosen }), { replace: true });
  createEffect(() => useKeys("Object", [
    { keys: "y", what: "YAML", act: () => choose("yaml") },
    { keys: "d", what: "Why", act: () => choose("why") },
    { keys: "e", what: "Events", act: () => choose("events") },
    ...(hasLogs(object()) ? [
      { keys: "l", what: "Logs", act: () => choose("logs") },
      { keys: "p", what: "Previous run", act: () => go(withQuery({ tab: "logs", previous: "1" }), { replace: true }) },
    ] : []),
    { keys: ".", what: "Actions", act: () => setActing(true) },
  ]));
  const known = () => answer.data?.row;
  return (
    <div class="view app-page">
      <header class="app-page-head">
        <p class="drawer-kicker muted"><Text value={props.subject.cluster} /> · {object().kind}<Show when={object().namespace}> · <Text value={object().namespace} /></Show></p>
        <h1 class="drawer-title"><Text value={object().name} /></h1>
      </header>
      <div class="drawer-body">
        <ErrorNote error={answer.error} what={`${object().kind} ${object().name}`} retry={again} />
        <Show when={answer.data?.isGone}>
          <Note kind="warn" title={`${object().kind} ${object().name} is gone.`}>This is what was read of it last.</Note>
        </Show>
        <For each={answer.data?.errors}>{(error) => <Note kind="warn" title={`${error.cluster} could not be read in full.`}><Text value={error.error.message} /></Note>}</For>
        <Show when={known()} fallback={<Show when={!answer.error && !answer.data}><Loading what={`${props.subject.cluster}, which is asked for the object`} rows={8} /></Show>}>
          {(row) => (
            <>
              <Head row={row()} state={answer.data?.isGone ? "gone" : answer.data?.isUnread ? "unread" : undefined} subject={props.subject} act={() => setActing(true)} />
              <Tabs label="About the object" tabs={tabs()} chosen={tab()} choose={choose}>
                <Show when={isPlain(name())}><ViewCommand text={command(VERBS[tab()] ?? "object", name(), ...(tab() === "events" ? ["-o", "json"] : []))} /></Show>
                <h2 class="reader">{tabs().find((one) => one.name === tab())?.title}</h2>
                <Switch>
                  <Match when={tab() === "yaml"}>
                    <Show when={row().isMetadata}><p class="muted">The metadata alone: {object().kind === "Secret" ? "Taffrail shows no values of a Secret" : "no more is known while the cluster does not answer"}.</p></Show>
                    <Yaml value={row().body} label={`YAML of ${object().kind} ${object().name}`} />
                  </Match>
                  <Match when={tab() === "why"}><Why name={name()} cluster={props.subject.cluster} /></Match>
                  <Match when={tab() === "events"}><Events row={row()} /></Match>
                  <Match when={tab() === "logs"}><Logs name={name()} cluster={props.subject.cluster} /></Match>
                </Switch>
              </Tabs>
            </>
          )}
        </Show>
      </div>
      <Show when={isActing()}>
        <Suspense><ObjectAction cluster={props.subject.cluster} object={{ ...object() }} close={() => setActing(false)} /></Suspense>
      </Show>
    </div>
  );
}

function Head(props: { row: ObjectRow; state: "gone" | "unread" | undefined; subject: ObjectRef; act: () => void }) {
  const owners = () => ownersOf(props.row.body, props.subject);
  const created = () => (props.row.body as { metadata?: { creationTimestamp?: string } } | null)?.metadata?.creationTimestamp;
  const kubectl = (verb: string) => {
    const { group, kind, namespace, name } = props.subject.object;
    const context = props.subject.cluster.includes("/") ? [] : ["--context", props.subject.cluster];
    return ["kubectl", verb, (group ? `${kind}.${group}` : kind).toLowerCase(), name, ...(namespace ? ["-n", namespace] : []), ...context].map(quote).join(" ");
  };
  return (
    <>
      <div class="lead">
        <StatusMark health={props.row.health} effective={props.row.effective} freshness={props.row.freshness} past={props.state} />
        <p><Text value={props.row.message ?? ""} /></p>
      </div>
      <Show when={props.state !== "gone"}>
        <div class="acting">
          <button type="button" class="button" aria-haspopup="dialog" title="Actions (.)" onClick={props.act}>Actions…</button>
        </div>
      </Show>
      <dl class="facts">
        <Show when={created()}>{(time) => <div><dt>Age</dt><dd><Age since={time()} /></dd></div>}</Show>
        <Show when={owners().length}>
          <div><dt>Owner</dt><dd><For each={owners()}>{(owner) => <a href={objectHref(owner)}>{owner.object.kind} <Text value={owner.object.name} /></a>}</For></dd></div>
        </Show>
        <Show when={isPlain(props.subject.cluster, ...Object.values(props.subject.object))}>
          <div><dt>To edit it</dt><dd><Copy text={kubectl("edit")} label="Copy the command that edits it" shown /></dd></div>
        </Show>
      </dl>
    </>
  );
}

function Events(props: { row: ObjectRow }) {
  return (
    <ul class="log-list">
      <For each={[...(props.row.events ?? [])].reverse()} fallback={<li class="muted">No event is known about it.</li>}>
        {(event) => (
          <li class="log-row">
            <span class="muted log-when"><Age since={event.lastSeen} /></span>
            <div>
              <p class="step-head"><span class="strong"><Text value={event.reason} /></span>
                <Show when={event.isWarning}><span class="tag">warning</span></Show>
                <Show when={event.count > 1}><span class="tag">{number(event.count)} times</span></Show></p>
              <p><Text value={event.message} /></p>
            </div>
          </li>
        )}
      </For>
    </ul>
  );
}
