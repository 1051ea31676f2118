// Chips that filter by status; several together admit each of them.
import { For } from "solid-js";
import type { Status } from "../api/types";
import { statusWord } from "../lib/words";
import { Glyph } from "./Glyph";

/** `choose` takes the parameter for the words that are chosen then, undefined for none. */
export function StatusChips(props: { statuses: readonly Status[]; chosen: readonly string[]; choose: (parameter: string | undefined) => void }) {
  const isOn = (status: Status) => props.chosen.includes(statusWord(status));
  const toggle = (status: Status) => {
    const word = statusWord(status);
    const next = isOn(status) ? props.chosen.filter((one) => one !== word) : [...props.chosen, word];
    props.choose(next.length ? next.join(",") : undefined);
  };
  return (
    <div class="chip-row">
      <For each={props.statuses}>
        {(status) => (
          <button type="button" class="chip" data-on={isOn(status)} aria-pressed={isOn(status)} onClick={() => toggle(status)}>
            <Glyph status={status} /> {statusWord(status)}
          </button>
        )}
      </For>
    </div>
  );
}
