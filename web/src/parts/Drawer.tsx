// A panel over the right of a list, which stays usable behind it. Escape closes it and gives the focus back.
import { type JSX, onCleanup, onMount, Show } from "solid-js";
import { useKeys } from "../lib/keys";
import { Icon } from "./Icon";

export function Drawer(props: { label: string; close: () => void; title: JSX.Element; full?: (() => void) | undefined; children: JSX.Element }) {
  let panel!: HTMLElement;
  const before = document.activeElement;
  onMount(() => panel.focus({ preventScroll: true }));
  onCleanup(() => {
    const index = before instanceof HTMLElement ? before.dataset["index"] : undefined;
    // The row may have been drawn again meanwhile.
    const back = before?.isConnected ? before : index && document.querySelector(`[role=row][data-index="${index}"]`);
    if (back instanceof HTMLElement) back.focus({ preventScroll: true });
  });
  useKeys(props.label, [{ keys: "Escape", what: "Close", act: () => props.close() }]);
  return (
    <section class="drawer" role="dialog" aria-label={props.label} tabIndex={-1} ref={panel}>
      <header class="drawer-head">
        <div class="grow drawer-heading">{props.title}</div>
        <Show when={props.full}>{(full) => <button type="button" class="icon-button" aria-label="Show as a full page" title="Full page" onClick={() => full()()}><Icon name="full" /></button>}</Show>
        <button type="button" class="icon-button" aria-label="Close" title="Close (Esc)" onClick={() => props.close()}><Icon name="close" /></button>
      </header>
      {props.children}
    </section>
  );
}
