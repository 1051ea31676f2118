// Members of a group by status, as a thin bar and as words.
import { For, Show } from "solid-js";
import type { Counts } from "../api/types";
import { number } from "../lib/text";
import { STATUSES, statusWord } from "../lib/words";
import { Glyph } from "./Glyph";

const total = (counts: Counts) => STATUSES.reduce((sum, status) => sum + counts[status], 0);

export function Bar(props: { counts: Counts }) {
  const present = () => STATUSES.filter((status) => props.counts[status] > 0);
  return (
    <span class="bar" aria-hidden="true">
      <For each={present()}>
        {(status) => <span class="bar-part" data-status={status} style={{ "flex-grow": props.counts[status] / total(props.counts) }} />}
      </For>
    </span>
  );
}

/** The counts that are not zero, the worst first; Ready in muted text. */
export function CountList(props: { counts: Counts; words?: boolean }) {
  const present = () => STATUSES.filter((status) => props.counts[status] > 0);
  return (
    <span class="counts">
      <For each={present()}>
        {(status) => (
          <span class="mark" data-status={status} title={statusWord(status)}>
            <Glyph status={status} />
            <span class="num">{number(props.counts[status])}</span>
            <Show when={props.words} fallback={<span class="reader"> {statusWord(status)}</span>}>
              <span class="muted">{statusWord(status)}</span>
            </Show>
          </span>
        )}
      </For>
    </span>
  );
}
