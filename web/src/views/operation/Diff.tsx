// The difference that a write makes, as lines of YAML: the sign says what the colour repeats.
import { For } from "solid-js";
import type { DiffLine, PlannedWrite } from "../../api/types";
import { Text } from "../../parts/Text";

const partsOf = (line: DiffLine) =>
  "added" in line ? { sign: "+", text: line.added, kind: "added" } : "removed" in line ? { sign: "−", text: line.removed, kind: "removed" } : { sign: " ", text: line.context, kind: "context" };

export function Diff(props: { write: PlannedWrite }) {
  const name = () => `${props.write.object.kind} ${props.write.object.namespace ? `${props.write.object.namespace}/` : ""}${props.write.object.name}`;
  return (
    <figure class="diff">
      <figcaption class="muted"><Text value={name()} /></figcaption>
      <div class="diff-lines mono" tabIndex={0} role="group" aria-label={`Change of ${name()}`}>
        <For each={props.write.lines}>
          {(line) => {
            const { sign, text, kind } = partsOf(line);
            return (
              <div class="diff-line" data-kind={kind}>
                <span aria-hidden="true">{sign}</span><span class="reader">{kind === "context" ? "" : kind}</span>
                <span class="diff-text"><Text value={text} /></span>
              </div>
            );
          }}
        </For>
      </div>
    </figure>
  );
}
