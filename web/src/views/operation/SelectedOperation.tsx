// Reconciles, suspends or resumes the apps that were chosen in a list.
import { createMemo, For, Show } from "solid-js";
import { createStore } from "solid-js/store";
import type { AppRow, Verb, VerbQuestion } from "../../api/types";
import { command } from "../../lib/command";
import { type Option, optionsOf, VERB_TITLES, type VerbName } from "../../lib/operation";
import { fullName, refOf } from "../../lib/refs";
import { count } from "../../lib/text";
import { OperationDialog } from "./OperationDialog";

export default function SelectedOperation(props: { rows: AppRow[]; verb: VerbName; close: () => void }) {
  const [options, setOptions] = createStore<Record<string, boolean>>({});
  const able = createMemo(() => props.rows.filter((row) => optionsOf(row.delivery)));
  const names = createMemo(() => able().map((row) => fullName(refOf(row))));
  const offered = () => new Map(able().flatMap((row) => (optionsOf(row.delivery) ?? []).map((option): [string, Option] => [option.name, option])));
  const verb = (): Verb => {
    if (props.verb !== "reconcile") return props.verb;
    return { reconcile: Object.fromEntries(Object.entries(options).filter(([, isOn]) => isOn)) };
  };
  const question = createMemo<VerbQuestion | undefined>(() => (names().length ? { verb: verb(), names: names(), apps: { namespace: null, clusters: [] } } : undefined));
  const shell = () => command(props.verb, ...names(), ...[...offered().values()].filter((one) => options[one.name]).map((one) => one.flag), "--yes");
  const left = () => props.rows.length - able().length;
  return (
    <OperationDialog title={VERB_TITLES[props.verb]} verb={props.verb} name={count(able().length, "app")} cluster={able()[0]?.cluster ?? ""} question={question()} command={shell()} close={props.close}
      choices={
        <>
          <Show when={left()}><p class="muted">{count(left(), "chosen app takes", "chosen apps take")} no requests: only Flux and Argo CD do.</p></Show>
          <Show when={props.verb === "reconcile"}>
            <For each={[...offered().values()]}>
              {(option) => <label class="check"><input type="checkbox" checked={options[option.name] ?? false} onChange={(event) => setOptions(option.name, event.currentTarget.checked)} /> {option.title}</label>}
            </For>
          </Show>
        </>
      } />
  );
}
