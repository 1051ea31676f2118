// The operations of an app, as buttons; the dialog of one is loaded when it is asked for.
import { createSignal, For, lazy, Show, Suspense } from "solid-js";
import type { AppRef } from "../../api/client";
import type { AppRow } from "../../api/types";
import { useKeys } from "../../lib/keys";
import { optionsOf, VERB_TITLES, type VerbName } from "../../lib/operation";

const Operation = lazy(() => import("./Operation"));

export function Acting(props: { app: AppRef; row: AppRow }) {
  const [asked, setAsked] = createSignal<VerbName>();
  const takesRequests = () => optionsOf(props.row.delivery) !== undefined;
  const verbs = (): VerbName[] => ["reconcile", props.row.suspended ? "resume" : "suspend"];
  const ask = (verb: VerbName) => { if (takesRequests()) setAsked(verb); };
  useKeys("App", [
    { keys: "R", what: "Reconcile", act: () => ask("reconcile") },
    { keys: "S", what: "Suspend or resume", act: () => ask(props.row.suspended ? "resume" : "suspend") },
  ]);
  return (
    <Show when={takesRequests()}>
      <div class="acting">
        <For each={verbs()}>{(verb) => <button type="button" class="button" aria-haspopup="dialog" onClick={() => ask(verb)}>{VERB_TITLES[verb]}…</button>}</For>
      </div>
      <Show when={asked()} keyed>
        {(verb) => <Suspense><Operation app={props.app} verb={verb} close={() => setAsked(undefined)} /></Suspense>}
      </Show>
    </Show>
  );
}
