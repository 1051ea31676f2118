// What a view says about its answer: each state reads differently from all others.
import { createEffect, createSignal, For, type JSX, Match, on, onCleanup, Show, Switch } from "solid-js";
import type { AnswerState, MissingCluster } from "../api/types";
import { type HubError, sessionEnded } from "../api/client";
import { hubNow } from "../lib/clock";
import { awaySince, clusters, hubAway } from "../live/live";
import { age, clockTime, count } from "../lib/text";
import { command } from "../lib/command";
import { Copy } from "./Copy";
import { Text } from "./Text";

export function Note(props: { kind: "quiet" | "warn" | "error"; title: JSX.Element; children?: JSX.Element; action?: JSX.Element }) {
  return (
    <div class="note" data-kind={props.kind} role={props.kind === "error" ? "alert" : undefined}>
      <p class="note-title">{props.title}</p>
      <Show when={props.children}><div class="note-body">{props.children}</div></Show>
      <Show when={props.action}><div class="note-action">{props.action}</div></Show>
    </div>
  );
}

/** Says over the whole page that the hub is away or the session has ended. */
export function HubNote() {
  return (
    <Switch>
      <Match when={sessionEnded()}>
        <Note kind="error" title="This session has ended."
          action={<Copy shown label="Copy the command" text="taffrail ui" />}>
          Run this command in a terminal. It prints the address that opens a new session; other tabs then go on where they were.
        </Note>
      </Match>
      <Match when={hubAway()}>
        <Note kind="warn" title={<>The hub does not answer for {age(hubNowAway())}.</>}>
          All that is shown was true before. The page tries again by itself.
        </Note>
      </Match>
    </Switch>
  );
}

const hubNowAway = () => {
  hubNow();
  return Date.now() - (awaySince() ?? Date.now());
};

/** Says which clusters an answer lacks, or knows from the past alone. */
export function CoverNote(props: { state: AnswerState | undefined; missing: MissingCluster[] | undefined; omitted?: number | undefined }) {
  const of = (state: AnswerState) => (props.missing ?? []).filter((one) => one.state === state);
  const line = (state: AnswerState, text: (n: number) => string) => (
    <Show when={of(state).length}>
      <details class="cover" data-state={state}>
        <summary>{text(of(state).length + (state === props.state ? (props.omitted ?? 0) : 0))}</summary>
        <ul>
          <For each={of(state)}>
            {(one) => (
              <li>
                <span class="strong"><Text value={one.cluster} /></span>{" "}
                <Show when={one.since}>{(since) => <span class="muted">since {clockTime(since(), hubNow())} </span>}</Show>
                <Text value={one.message} />
              </li>
            )}
          </For>
        </ul>
      </details>
    </Show>
  );
  return (
    <>
      {line("loading", (n) => `${count(n, "cluster is", "clusters are")} still being read; ${n === 1 ? "its" : "their"} rows will come.`)}
      {line("partial", (n) => `Partial: ${count(n, "cluster is", "clusters are")} missing here in whole or in part.`)}
      {line("stale", (n) => `${count(n, "cluster is", "clusters are")} silent; of ${n === 1 ? "it" : "them"} you see the last known state.`)}
    </>
  );
}

/** True if the stream knows of clusters that are not live: it is ahead of what a list says of itself. */
const areSilent = () => (clusters()?.stale ?? 0) + (clusters()?.lost ?? 0) > 0;

/** The foot of a list: how far the answer goes, and what else the list says of itself. */
export const ListFoot = (props: Parameters<typeof CoverNote>[0] & { isPast?: boolean; children?: JSX.Element }) => (
  <footer class="list-foot">
    <CoverNote state={props.state} missing={props.missing} omitted={props.omitted} />
    <Show when={props.state === "complete" && !hubAway() && (props.isPast || !areSilent())}><span>{props.isPast ? "Every cluster is covered." : "Live; every cluster is covered."}</span></Show>
    <span class="grow" />
    {props.children}
  </footer>
);

/** The failure to read a part that may hold what was not found. */
function hiddenBy({ question }: HubError) {
  if (typeof question !== "object") return undefined;
  const missed = "noSingleApp" in question ? question.noSingleApp : "notInClusters" in question ? question.notInClusters : undefined;
  return missed?.hidden_by?.error;
}

export function ErrorNote(props: { error: HubError | undefined; what: string; retry?: () => void }) {
  const again = () => props.retry && <button type="button" class="button" onClick={() => props.retry?.()}>Try again</button>;
  return (
    <Show when={props.error}>
      {(error) => (
        <Switch fallback={<Note kind="error" title={`${props.what} could not be read.`} action={again()}><Text value={error().message} /> <Text value={error().hint ?? ""} /></Note>}>
          <Match when={error().status === 401}>{null}</Match>
          <Match when={error().status === 0 && hubAway()}>{null}</Match>
          <Match when={error().status === 403 || hiddenBy(error())?.reason === "Forbidden"}>
            <Note kind="error" title={`You may not see ${props.what.toLowerCase()}.`} action={hiddenBy(error()) && again()}><Text value={hiddenBy(error())?.message ?? error().message} /> <Text value={error().hint ?? ""} /></Note>
          </Match>
          <Match when={hiddenBy(error())}>
            {(hidden) => <Note kind="error" title={`${props.what} could not be read.`} action={again()}><Text value={hidden().message} /></Note>}
          </Match>
          <Match when={error().status === 404 || error().status === 422}>
            <Note kind="quiet" title={`${props.what}: not there.`} action={again()}><Text value={error().message} /></Note>
          </Match>
          <Match when={error().status === 503}>
            <Note kind="warn" title="The hub is busy." action={again()}><Text value={error().message} /></Note>
          </Match>
        </Switch>
      )}
    </Show>
  );
}

/** Nothing for 300 ms, then grey rows, after 1 s also what is waited for: a quick answer never flickers. */
export function Loading(props: { what: string; rows?: number }) {
  const [stage, setStage] = createSignal(0);
  const timers = [setTimeout(() => setStage(1), 300), setTimeout(() => setStage(2), 1000)];
  onCleanup(() => timers.forEach(clearTimeout));
  return (
    <Show when={stage() > 0}>
      <div class="loading">
        <p class="loading-what muted" role="status">{stage() > 1 ? `Waiting for ${props.what}` : " "}</p>
        <For each={Array.from({ length: props.rows ?? 6 })}>{() => <div class="skeleton" aria-hidden="true" />}</For>
      </div>
    </Show>
  );
}

/** Tells readers about a count, at most once in 5 s. */
export function Announce(props: { text: string }) {
  const [said, setSaid] = createSignal("");
  let at = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  createEffect(on(() => props.text, (text) => {
    clearTimeout(timer);
    timer = setTimeout(() => { at = Date.now(); setSaid(text); }, Math.max(200, at + 5000 - Date.now()));
  }));
  onCleanup(() => clearTimeout(timer));
  return <p class="reader" role="status">{said()}</p>;
}

/** The command of the terminal for what a view shows. */
export const ViewCommand = (props: { text: string }) => <Copy text={props.text} label="Copy the command of this view" shown isMain />;

export const overviewCommand = () => command("overview");
