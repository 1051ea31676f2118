// Reconciles, suspends or resumes an app, in one cluster or in all that have it.
import { createMemo, createSignal } from "solid-js";
import type { AppRef } from "../../api/client";
import type { VerbQuestion } from "../../api/types";
import { command } from "../../lib/command";
import { optionsOf, VERB_TITLES, type VerbName } from "../../lib/operation";
import { Text } from "../../parts/Text";
import { OperationDialog } from "./OperationDialog";
import { createVerbOptions } from "./verbOptions";

export default function Operation(props: { app: AppRef; verb: VerbName; close: () => void }) {
  const [isEverywhere, setEverywhere] = createSignal(false);
  const { verb, flags, Boxes } = createVerbOptions(() => props.verb, () => optionsOf(props.app.delivery) ?? []);
  const name = () => {
    const { cluster, delivery, namespace, name, home } = props.app;
    const full = [delivery, namespace || "-", name].join("/");
    return isEverywhere() ? full : `${cluster}/${full}${home ? `@${home}` : ""}`;
  };
  const question = createMemo<VerbQuestion>(() => ({
    verb: verb(), names: [name()], apps: { namespace: null, clusters: isEverywhere() ? [] : [props.app.cluster] },
  }));
  const shell = () => command(props.verb, name(), ...flags(), ...(isEverywhere() ? ["--yes"] : ["--cluster", props.app.cluster]));
  return (
    <OperationDialog title={VERB_TITLES[props.verb]} verb={props.verb} name={props.app.name} cluster={props.app.cluster} question={question()} command={shell()} close={props.close}
      choices={
        <>
          <label class="check"><input type="radio" name="where" checked={!isEverywhere()} onChange={() => setEverywhere(false)} /> Only in <Text value={props.app.cluster} /></label>
          <label class="check"><input type="radio" name="where" checked={isEverywhere()} onChange={() => setEverywhere(true)} /> In every cluster that has it</label>
          <Boxes />
        </>
      } />
  );
}
