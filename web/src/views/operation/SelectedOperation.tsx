// Reconciles, suspends or resumes the apps that were chosen in a list.
import { createMemo, Show } from "solid-js";
import type { AppRow, VerbQuestion } from "../../api/types";
import { command } from "../../lib/command";
import { type Option, optionsOf, VERB_TITLES, type VerbName } from "../../lib/operation";
import { fullName, refOf } from "../../lib/refs";
import { count } from "../../lib/text";
import { OperationDialog } from "./OperationDialog";
import { createVerbOptions } from "./verbOptions";

export default function SelectedOperation(props: { rows: AppRow[]; verb: VerbName; close: () => void }) {
  const able = createMemo(() => props.rows.filter((row) => optionsOf(row.delivery)));
  const names = createMemo(() => able().map((row) => fullName(refOf(row))));
  const offered = () => [...new Map(able().flatMap((row) => (optionsOf(row.delivery) ?? []).map((option): [string, Option] => [option.name, option]))).values()];
  const { verb, flags, Boxes } = createVerbOptions(() => props.verb, offered);
  const question = createMemo<VerbQuestion | undefined>(() => (names().length ? { verb: verb(), names: names(), apps: { namespace: null, clusters: [] } } : undefined));
  const shell = () => command(props.verb, ...names(), ...flags(), "--yes");
  const left = () => props.rows.length - able().length;
  return (
    <OperationDialog title={VERB_TITLES[props.verb]} verb={props.verb} name={count(able().length, "app")} cluster={able()[0]?.cluster ?? ""} question={question()} command={shell()} close={props.close}
      choices={
        <>
          <Show when={left()}><p class="muted">{count(left(), "chosen app takes", "chosen apps take")} no requests: only Flux and Argo CD do.</p></Show>
          <Boxes />
        </>
      } />
  );
}
