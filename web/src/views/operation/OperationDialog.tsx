// The dialog that confirms an operation: it shows what would be written, writes exactly that, and tells each result.
import { createEffect, createSignal, For, type JSX, Match, on, onMount, Show, Switch } from "solid-js";
import { createStore } from "solid-js/store";
import { hub, HubError } from "../../api/client";
import type { OperationQuestion, PlannedItem } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { type ItemRun, newRunId, outcomeWords, runPlan } from "../../lib/operation";
import { count, number, plain } from "../../lib/text";
import { Copy } from "../../parts/Copy";
import { Icon } from "../../parts/Icon";
import { ErrorNote, Loading, Note } from "../../parts/Notes";
import { Text } from "../../parts/Text";
import { Diff } from "./Diff";

/** The number of apps above which it must be typed. */
const MOST_UNCOUNTED = 10;
/** The number of changes that are shown; the others are counted. */
const MOST_SHOWN = 50;

export function OperationDialog(props: {
  /** What is done, as the beginning of a sentence: `Suspend`. */
  title: string;
  /** To what: the name of an app or object. */
  name: string;
  /** The cluster, as long as there is no plan. */
  cluster: string;
  /** The question that the choices make; undefined as long as they make none. */
  question: OperationQuestion | undefined;
  /** The command that does the same. */
  command: string;
  /** What the user may choose before it runs. */
  choices: JSX.Element;
  verb: string;
  close: () => void;
}) {
  let dialog!: HTMLDialogElement;
  let cancel!: HTMLButtonElement;
  const [typed, setTyped] = createSignal("");
  const [runs, setRuns] = createStore<ItemRun[]>([]);
  const [phase, setPhase] = createSignal<"plan" | "running" | "done">("plan");
  const [failure, setFailure] = createSignal<HubError>();

  // While it runs, and after it, the plan that was confirmed stays.
  const [answer, again] = createAnswer(() => (phase() === "plan" ? props.question : undefined), (asked, signal) => hub.plan(asked, signal));
  const [confirmed, setConfirmed] = createSignal<typeof answer.data>();
  const shown = () => confirmed() ?? answer.data;
  const items = () => shown()?.plan.items ?? [];
  const writing = () => items().filter((item) => item.writes.length);
  const nameOf = ({ target }: PlannedItem) => ("delivery" in target ? `${target.delivery}/${target.namespace}/${target.name}` : `${target.cluster}/${target.object.namespace}/${target.object.name}`);
  const apps = () => new Set(writing().map(nameOf)).size;
  const isForbidden = () => writing().length > 0 && writing().every((item) => item.forbidden);
  const mustCount = () => apps() > MOST_UNCOUNTED;
  const mayRun = () => phase() === "plan" && !answer.loading && writing().length > 0 && !isForbidden() && (!mustCount() || typed().trim() === String(apps()));
  const where = () => {
    const clusters = new Set(writing().map((item) => item.cluster));
    return clusters.size > 1 ? `in ${number(clusters.size)} clusters` : `in ${plain([...clusters][0] ?? props.cluster)}`;
  };
  onMount(() => {
    dialog.showModal();
    cancel.focus();
  });
  const finish = () => dialog.close();
  // The button that had the focus is gone, or the choice is open again.
  createEffect(on(phase, () => cancel.focus(), { defer: true }));

  async function run() {
    const plan = answer.data;
    // A second click finds the phase changed.
    if (!plan || !mayRun()) return;
    const asked = props.question;
    if (!asked) return;
    setConfirmed(plan);
    setRuns(plan.plan.items.map(() => ({ doing: "", outcome: undefined })));
    setFailure(undefined);
    setPhase("running");
    try {
      await runPlan(newRunId(), asked, plan, apps(), (item, run) => setRuns(item, run));
      setPhase("done");
    } catch (error) {
      const known = error instanceof HubError ? error : new HubError(-1, String(error));
      setFailure(known);
      if (known.status <= 0) return setPhase("done");
      // Nothing was sent: what would be written now is read and shown again.
      setConfirmed(undefined);
      setRuns([]);
      setTyped("");
      setPhase("plan");
    }
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void run();
  }
  const good = () => runs.filter((run) => run.outcome && outcomeWords(run.outcome, props.verb).isGood).length;
  return (
    <dialog class="dialog operation" aria-labelledby="operation-title" ref={dialog} onClose={() => props.close()} onKeyDown={onKeyDown}>
      <div class="dialog-body operation-body">
        <header class="dialog-head">
          <h2 id="operation-title">{props.title} <Text value={props.name} /> {where()}</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={finish}><Icon name="close" /></button>
        </header>
        <Show when={phase() === "plan"}>
          <fieldset class="operation-options">
            <legend class="reader">Choices</legend>
            {props.choices}
          </fieldset>
        </Show>
        <Show when={failure()}>
          {(error) => <Note kind="error" title={phase() === "plan" ? "Nothing was written." : "Its result is not known here."}><Text value={[error().message, error().hint].filter(Boolean).join("; ")} /></Note>}
        </Show>
        <ErrorNote error={answer.error} what="The plan" retry={again} />
        <Show when={shown()} fallback={<Show when={!answer.error && props.question}><Loading what="the clusters, to plan the change" rows={3} /></Show>}>
          {(plan) => (
            <>
              <Show when={!writing().length && phase() === "plan"}>
                <Note kind="quiet" title="Nothing would be written.">
                  <For each={items()}>{(item) => <p><Text value={`${item.cluster}: ${item.unchanged}`} /></p>}</For>
                </Note>
              </Show>
              <ul class="operation-items" aria-label="Changes">
                <For each={items().slice(0, MOST_SHOWN)}>
                  {(item, index) => (
                    <Show when={item.writes.length}>
                      <li>
                        <h3 class="step-head"><Text value={item.cluster} /> <Result run={runs[index()]} verb={props.verb} /></h3>
                        <Show when={phase() === "done" && writing().length > 1} fallback={<For each={item.writes}>{(write) => <Diff write={write} />}</For>}>
                          <details class="operation-written"><summary class="plain link">What was written</summary><For each={item.writes}>{(write) => <Diff write={write} />}</For></details>
                        </Show>
                        <Show when={item.forbidden}>{(why) => <p class="operation-warning" data-kind="forbidden"><Text value={why()} /></p>}</Show>
                        <For each={item.warnings}>{(warning) => <p class="operation-warning"><Text value={warning} /></p>}</For>
                      </li>
                    </Show>
                  )}
                </For>
              </ul>
              <Show when={items().length > MOST_SHOWN}><p class="muted">and {count(items().length - MOST_SHOWN, "more change")}</p></Show>
              <For each={plan().plan.refused}>
                {(refused) => (
                  <Note kind="warn" title={<Text value={refused.error.message} />}><Text value={refused.error.hint ?? ""} /></Note>
                )}
              </For>
            </>
          )}
        </Show>
        <p class={phase() === "done" ? "operation-sum" : "reader"} role="status">
          <Switch>
            <Match when={phase() === "running"}>The change is written.</Match>
            <Match when={phase() === "done"}>{good()} of {writing().length} succeeded.</Match>
          </Switch>
        </p>
        <Show when={mustCount() && phase() === "plan"}>
          <label class="operation-count">Type the number of apps, {apps()}, to confirm it
            <input class="field" type="text" inputmode="numeric" autocomplete="off" value={typed()} onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
        </Show>
        <footer class="operation-foot">
          <Copy text={props.command} label="Copy the command" shown />
          <span class="grow" />
          <button type="button" class="button" ref={cancel} onClick={finish}>{phase() === "plan" ? "Cancel" : "Close"}</button>
          <Show when={phase() === "plan"}>
            <button type="button" class="button primary" title="Ctrl Enter" aria-keyshortcuts="Control+Enter" disabled={!mayRun()} onClick={run}>{props.title} {apps() > 1 ? number(apps()) : plain(props.name)} {where()}</button>
          </Show>
        </footer>
      </div>
    </dialog>
  );
}

/** How far the item of a run is, or its result. */
function Result(props: { run: ItemRun | undefined; verb: string }) {
  const words = () => props.run?.outcome && outcomeWords(props.run.outcome, props.verb);
  return (
    <Show when={props.run}>
      {(run) => (
        <Show when={words()} fallback={<span class="muted operation-doing"><Text value={run().doing || "Waiting for its turn"} /></span>}>
          {(known) => (
            <>
              <span class="operation-result" data-good={known().isGood === undefined ? "unknown" : String(known().isGood)}>{known().isGood === true ? "✓ " : known().isGood === false ? "✕ " : ""}{known().text}</span>
              <Show when={known().why}><span class="muted operation-why"><Text value={known().why} /></span></Show>
            </>
          )}
        </Show>
      )}
    </Show>
  );
}
