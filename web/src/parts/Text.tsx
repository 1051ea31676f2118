// Text of others, isolated from what stands around it, with deceiving characters made visible.
import { For, Show } from "solid-js";
import { pieces, plain } from "../lib/text";

export function Text(props: { value: string }) {
  const parts = () => pieces(props.value);
  return (
    <bdi>
      <Show when={parts().length > 1 || parts()[0]?.isEscape} fallback={props.value}>
        <For each={parts()}>{(part) => (part.isEscape ? <span class="esc">{part.text}</span> : part.text)}</For>
      </Show>
    </bdi>
  );
}

const TAIL = 8;

/** A name that is cut in its middle where it is too long, since names of one fleet differ at both ends. */
export function Name(props: { value: string; class?: string }) {
  const shown = () => plain(props.value);
  const isLong = () => shown().length > 2 * TAIL;
  return (
    <bdi class={`name ${props.class ?? ""}`} title={shown()}>
      <Show when={isLong()} fallback={<span class="clip">{shown()}</span>}>
        <span class="clip">{shown().slice(0, -TAIL)}</span>
        <span class="name-tail">{shown().slice(-TAIL)}</span>
      </Show>
    </bdi>
  );
}

/** The key of an app: the part by which people call it, then where it comes from. */
export function Key(props: { value: string }) {
  const cut = () => props.value.lastIndexOf("/");
  return (
    <span class="key" title={plain(props.value)}>
      <bdi class="strong clip">{plain(props.value.slice(cut() + 1))}</bdi>
      <Show when={cut() > 0}><bdi class="muted clip key-from">{plain(props.value.slice(0, cut()))}</bdi></Show>
    </span>
  );
}
