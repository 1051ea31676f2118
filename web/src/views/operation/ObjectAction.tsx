// Runs an action on an object of a cluster: restart, scale, or what the scripts for its kind offer.
import { createMemo, createSignal, For, Show } from "solid-js";
import { createStore } from "solid-js/store";
import { hub } from "../../api/client";
import type { ActionQuestion, ObjectKey } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { command } from "../../lib/command";
import { objectText } from "../../lib/objects";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Text } from "../../parts/Text";
import { OperationDialog } from "./OperationDialog";

export default function ObjectAction(props: { cluster: string; object: ObjectKey; close: () => void }) {
  const [chosen, setChosen] = createSignal<string>();
  const [values, setValues] = createStore<Record<string, string>>({});
  const object = () => objectText(props);
  const [answer, again] = createAnswer(object, (name, signal) => hub.actions({ action: "", object: name }, signal));
  const offered = () => answer.data?.items ?? [];
  const action = () => offered().find((one) => one.name === chosen());
  const parameters = () => Object.fromEntries((action()?.parameters ?? []).map((one) => [one.name, values[one.name] ?? (one.value || one.default || "")]));
  const question = createMemo<ActionQuestion | undefined>(() => {
    const name = action()?.name;
    return name === undefined ? undefined : { action: name, object: object(), parameters: parameters() };
  });
  const shell = () => command("action", action()?.name ?? "ACTION", object(), ...Object.entries(parameters()).flatMap(([name, value]) => ["--param", `${name}=${value}`]));
  const title = () => {
    const name = action()?.name ?? "action";
    return name.charAt(0).toUpperCase() + name.slice(1);
  };
  return (
    <OperationDialog title={title()} verb={action()?.name ?? ""} name={`${props.object.kind} ${props.object.name}`} cluster={props.cluster} question={question()} command={shell()} close={props.close}
      choices={
        <>
          <ErrorNote error={answer.error} what="The actions" retry={again} />
          <Show when={answer.data} fallback={<Show when={!answer.error}><Loading what={`the actions of ${props.object.name}`} rows={1} /></Show>}>
            <For each={offered()} fallback={<p class="muted">No actions are known for this kind.</p>}>
              {(one) => (
                <label class="check" data-disabled={one.disabled}>
                  <input type="radio" name="action" disabled={one.disabled} checked={chosen() === one.name} onChange={() => setChosen(one.name)} />
                  <Text value={one.name} /><Show when={one.displayName}><span class="muted"><Text value={one.displayName ?? ""} /></span></Show>
                  <Show when={one.origin === "cluster"}><span class="muted">a script of the cluster</span></Show>
                </label>
              )}
            </For>
            <For each={action()?.parameters}>
              {(one) => (
                <label class="check"><Text value={one.name} />
                  <input class="field" type="text" value={values[one.name] ?? (one.value || one.default || "")} onChange={(event) => setValues(one.name, event.currentTarget.value)} />
                </label>
              )}
            </For>
          </Show>
        </>
      } />
  );
}
