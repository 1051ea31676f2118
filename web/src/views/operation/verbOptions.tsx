// The options of a verb, which its delivery tools have for `reconcile` alone.
import { For, Show } from "solid-js";
import { createStore } from "solid-js/store";
import type { Verb } from "../../api/types";
import type { Option, VerbName } from "../../lib/operation";

/** Makes the choice among the options that `offered` lists: the verb with the chosen ones, their flags, and the boxes. */
export function createVerbOptions(name: () => VerbName, offered: () => Option[]) {
  const [chosen, setChosen] = createStore<Record<string, boolean>>({});
  const isReconcile = () => name() === "reconcile";
  const verb = (): Verb => {
    const verb = name();
    return verb === "reconcile" ? { reconcile: Object.fromEntries(Object.entries(chosen).filter(([, isOn]) => isOn)) } : verb;
  };
  const flags = () => offered().filter((one) => chosen[one.name]).map((one) => one.flag);
  const Boxes = () => (
    <Show when={isReconcile()}>
      <For each={offered()}>
        {(option) => <label class="check"><input type="checkbox" checked={chosen[option.name] ?? false} onChange={(event) => setChosen(option.name, event.currentTarget.checked)} /> {option.title}</label>}
      </For>
    </Show>
  );
  return { verb, flags, Boxes };
}
