// What can be done to the rows that are chosen; it floats, since rows must not move because others were chosen.
import { createSignal, lazy, onCleanup, Show, Suspense } from "solid-js";
import { hub, type Params } from "../../api/client";
import type { AppRow } from "../../api/types";
import { useKeys } from "../../lib/keys";
import { VERB_TITLES, type VerbName } from "../../lib/operation";
import { count, number } from "../../lib/text";
import { Text } from "../../parts/Text";

const SelectedOperation = lazy(() => import("../operation/SelectedOperation"));

/** The number of apps that one operation takes at most. */
const MOST = 500;

export function Chosen(props: { rows: AppRow[]; question: Params; total: number; set: (rows: AppRow[]) => void; clear: () => void }) {
  const [verb, setVerb] = createSignal<VerbName>();
  const [failure, setFailure] = createSignal("");
  let isGone = false;
  onCleanup(() => { isGone = true; });
  const isEach = () => props.rows.length >= Math.min(props.total, MOST);
  async function all() {
    setFailure("");
    const asked = JSON.stringify(props.question);
    try {
      const { items } = await hub.apps({ ...props.question, limit: MOST });
      // Another filter has other rows.
      if (!isGone && JSON.stringify(props.question) === asked) props.set(items);
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    }
  }
  useKeys("Chosen apps", [
    { keys: "R", what: "Reconcile", act: () => setVerb("reconcile") },
    { keys: "S", what: "Suspend or resume", act: () => setVerb(props.rows.every((row) => row.suspended) ? "resume" : "suspend") },
    { keys: "Escape", what: "Choose none", act: () => props.clear() },
  ]);
  const button = (name: VerbName) => <button type="button" class="button" aria-haspopup="dialog" onClick={() => setVerb(name)}>{VERB_TITLES[name]}…</button>;
  return (
    <>
      <div class="chosen" role="group" aria-label="Chosen apps">
        <span class="strong" role="status">{count(props.rows.length, "app")} chosen</span>
        {button("reconcile")}{button("suspend")}{button("resume")}
        <Show when={!isEach()}>
          <button type="button" class="plain link" onClick={() => void all()}>{props.total > MOST ? `Choose the first ${number(MOST)} of ${number(props.total)}` : `Choose all ${number(props.total)} that match`}</button>
        </Show>
        <button type="button" class="plain link" onClick={() => props.clear()}>Clear</button>
        <Show when={failure()}><span role="alert"><Text value={failure()} /></span></Show>
      </div>
      <Show when={verb()}>
        {(name) => <Suspense><SelectedOperation rows={props.rows} verb={name()} close={() => setVerb(undefined)} /></Suspense>}
      </Show>
    </>
  );
}
