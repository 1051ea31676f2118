import { createSignal, Show } from "solid-js";
import { plain } from "../lib/text";
import { Icon } from "./Icon";

/** A button that copies a text; with `shown` the text, a command, stands beside it. A long text is a function. */
export function Copy(props: { text: string | (() => string); label: string; shown?: boolean; isMain?: boolean }) {
  const text = () => (typeof props.text === "string" ? props.text : undefined);
  const [isDone, setDone] = createSignal(false);
  async function copy(event: MouseEvent) {
    event.stopPropagation();
    try {
      await navigator.clipboard.writeText(typeof props.text === "string" ? props.text : props.text());
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      // Without the right to use the clipboard the text can still be selected and read from the title.
    }
  }
  return (
    <button type="button" class={props.shown ? "command" : text() === undefined ? "button" : "icon-button"} title={text() ?? props.label} aria-label={text() === undefined ? undefined : `${props.label}: ${text()}`}
      data-copy={props.isMain ? "main" : undefined} onClick={copy}>
      <Show when={props.shown}><code class="clip">{plain(text() ?? "")}</code></Show>
      <Show when={text() === undefined}>{props.label}</Show>
      <Icon name={isDone() ? "check" : "copy"} size={14} />
      <span class="reader" role="status">{isDone() ? "Copied" : ""}</span>
    </button>
  );
}
