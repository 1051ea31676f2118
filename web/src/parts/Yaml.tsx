// An object as YAML, whose maps and lists can be folded.
import { createMemo, createSignal, Index, Show } from "solid-js";
import { count, number } from "../lib/text";
import { yamlLines, yamlText } from "../lib/yaml";
import { Copy } from "./Copy";
import { Icon } from "./Icon";
import { Text } from "./Text";

/** Lines that are drawn without asking. */
const MOST = 1500;
/** Parts that are folded until somebody opens them: who wrote which field is seldom the question. */
const FOLDED = new Set(["/metadata/managedFields"]);

/** Characters of a value that are drawn; all of it is copied. */
const LONGEST = 20_000;
const cut = (value: string) => (value.length > LONGEST ? `${value.slice(0, LONGEST)}… ${number(value.length - LONGEST)} characters more` : value);

export function Yaml(props: { value: unknown; label: string }) {
  const [folds, setFolds] = createSignal<ReadonlyMap<string, boolean>>(new Map());
  const [most, setMost] = createSignal(MOST);
  const isFolded = (path: string) => folds().get(path) ?? FOLDED.has(path);
  const lines = createMemo(() => yamlLines(props.value, isFolded));
  const fold = (path: string) => setFolds((was) => new Map(was).set(path, !isFolded(path)));
  return (
    <>
      <div class="log-tools"><Copy text={() => yamlText(yamlLines(props.value, () => false))} label="Copy the YAML" /></div>
      <div class="yaml mono" tabIndex={0} role="group" aria-label={props.label}>
        <Index each={lines().slice(0, most())}>
          {(line) => (
            <div class="yaml-line" style={{ "padding-left": `calc(${line().indent + 2}ch + 18px)` }}>
              <Show when={line().entries !== undefined && line().key.trim() !== "-"}>
                <button type="button" class="plain yaml-fold" data-open={!isFolded(line().path)} aria-expanded={!isFolded(line().path)} aria-label={`Fold ${line().path}`} onClick={() => fold(line().path)}><Icon name="chevron" size={10} /></button>
              </Show>
              <Show when={line().key}><span class="yaml-key"><Text value={line().key} /></span></Show>
              <Show when={line().value}> <Text value={cut(line().value)} /></Show>
              <Show when={line().entries !== undefined && isFolded(line().path)}><button type="button" class="plain muted" tabIndex={-1} onClick={() => fold(line().path)}> … {count(line().entries ?? 0, "entry", "entries")}</button></Show>
            </div>
          )}
        </Index>
      </div>
      <Show when={lines().length > most()}>
        <p class="grid-end muted">{number(most())} of {count(lines().length, "line")}. <button type="button" class="plain link" onClick={() => setMost((n) => n + MOST)}>Show more</button></p>
      </Show>
    </>
  );
}
