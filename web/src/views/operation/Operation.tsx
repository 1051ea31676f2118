// Reconciles, suspends or resumes an app, in one cluster or in all that have it.
import { createMemo, createSignal, For, Show } from "solid-js";
import { createStore } from "solid-js/store";
import type { AppRef } from "../../api/client";
import type { Verb, VerbQuestion } from "../../api/types";
import { command } from "../../lib/command";
import { optionsOf, VERB_TITLES, type VerbName } from "../../lib/operation";
import { Text } from "../../parts/Text";
import { OperationDialog } from "./OperationDialog";

export default function Operation(props: { app: AppRef; verb: VerbName; close: () => void }) {
  const [isEverywhere, setEverywhere] = createSignal(false);
  const [options, setOptions] = createStore<Record<string, boolean>>({});
  const verb = (): Verb => {
    if (props.verb !== "reconcile") return props.verb;
    return { reconcile: Object.fromEntries(Object.entries(options).filter(([, isOn]) => isOn)) };
  };
  const name = () => {
    const { cluster, delivery, namespace, name, home } = props.app;
    const full = [delivery, namespace || "-", name].join("/");
    return isEverywhere() ? full : `${cluster}/${full}${home ? `@${home}` : ""}`;
  };
  const question = createMemo<VerbQuestion>(() => ({
    verb: verb(), names: [name()], apps: { namespace: null, clusters: isEverywhere() ? [] : [props.app.cluster] },
  }));
  const shell = () => {
    const flags = (optionsOf(props.app.delivery) ?? []).filter((one) => options[one.name]).map((one) => one.flag);
    return command(props.verb, name(), ...flags, ...(isEverywhere() ? ["--yes"] : ["--cluster", props.app.cluster]));
  };
  return (
    <OperationDialog title={VERB_TITLES[props.verb]} verb={props.verb} name={props.app.name} cluster={props.app.cluster} question={question()} command={shell()} close={props.close}
      choices={
        <>
          <label class="check"><input type="radio" name="where" checked={!isEverywhere()} onChange={() => setEverywhere(false)} /> Only in <Text value={props.app.cluster} /></label>
          <label class="check"><input type="radio" name="where" checked={isEverywhere()} onChange={() => setEverywhere(true)} /> In every cluster that has it</label>
          <Show when={props.verb === "reconcile"}>
            <For each={optionsOf(props.app.delivery)}>
              {(option) => <label class="check"><input type="checkbox" checked={options[option.name] ?? false} onChange={(event) => setOptions(option.name, event.currentTarget.checked)} /> {option.title}</label>}
            </For>
          </Show>
        </>
      } />
  );
}
