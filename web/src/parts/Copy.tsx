import { createSignal, Show } from "solid-js";
import { Icon } from "./Icon";

/** A button that copies a command; with `shown` the command stands beside it. */
export function Copy(props: { text: string; label: string; shown?: boolean; isMain?: boolean }) {
  const [isDone, setDone] = createSignal(false);
  async function copy(event: MouseEvent) {
    event.stopPropagation();
    try {
      await navigator.clipboard.writeText(props.text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      // Without the right to use the clipboard the text can still be selected and read from the title.
    }
  }
  return (
    <button type="button" class={props.shown ? "command" : "icon-button"} title={props.text} aria-label={`${props.label}: ${props.text}`}
      data-copy={props.isMain ? "main" : undefined} onClick={copy}>
      <Show when={props.shown}><code class="clip">{props.text}</code></Show>
      <Icon name={isDone() ? "check" : "copy"} size={14} />
      <span class="reader" role="status">{isDone() ? "Copied" : ""}</span>
    </button>
  );
}
