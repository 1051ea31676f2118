import { createSignal, For } from "solid-js";
import { keyGroups } from "../lib/keys";
import { setSingleKeys, singleKeys } from "../lib/prefs";
import { Icon } from "./Icon";

let dialog: HTMLDialogElement | undefined;
const [, setShown] = createSignal(0);

export function showHelp() {
  setShown((n) => n + 1);
  if (!dialog?.open) dialog?.showModal();
}

/** The table of keys that act now. */
export function Help() {
  return (
    <dialog class="dialog" aria-labelledby="help-title" ref={dialog} onClick={(event) => event.target === dialog && dialog?.close()}>
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id="help-title">Keys</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={() => dialog?.close()}><Icon name="close" /></button>
        </header>
        <div class="help-groups">
          <For each={keyGroups()}>
            {(group) => (
              <section>
                <h3 class="muted">{group.title}</h3>
                <dl class="help-keys">
                  <For each={group.keys}>
                    {(key) => <div><dt><For each={key.keys === " " ? ["Space"] : key.keys.split(" ")}>{(one) => <kbd>{one}</kbd>}</For></dt><dd>{key.what}</dd></div>}
                  </For>
                </dl>
              </section>
            )}
          </For>
        </div>
        <label class="help-switch">
          <input type="checkbox" checked={singleKeys() === "on"} onChange={(event) => setSingleKeys(event.currentTarget.checked ? "on" : "off")} />
          Single keys act (Enter and Esc always do)
        </label>
      </div>
    </dialog>
  );
}
