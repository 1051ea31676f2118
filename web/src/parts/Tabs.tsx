import { createEffect, createUniqueId, For, type JSX } from "solid-js";

export interface Tab {
  name: string;
  title: string;
}

/** Tabs whose choice is kept by the caller; arrow keys move between them. */
export function Tabs(props: { label: string; tabs: Tab[]; chosen: string; choose: (name: string) => void; children: JSX.Element }) {
  const id = createUniqueId();
  let list!: HTMLDivElement;
  // On a phone the chosen tab may stand beyond the edge.
  createEffect(() => {
    const tab = list.querySelector<HTMLElement>(`[data-tab="${props.chosen}"]`);
    if (tab && tab.offsetLeft + tab.offsetWidth > list.clientWidth) list.scrollLeft = tab.offsetLeft - 24;
  });
  function onKeyDown(event: KeyboardEvent) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = props.tabs.findIndex((tab) => tab.name === props.chosen);
    const next = props.tabs[(at + step + props.tabs.length) % props.tabs.length];
    if (!next) return;
    props.choose(next.name);
    list.querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus();
  }
  return (
    <>
      <div class="tabs" role="tablist" aria-label={props.label} ref={list} onKeyDown={onKeyDown}>
        <For each={props.tabs}>
          {(tab) => (
            <button type="button" class="tab plain" role="tab" id={`${id}-${tab.name}`} data-tab={tab.name} aria-selected={tab.name === props.chosen}
              aria-controls={`${id}-panel`} tabIndex={tab.name === props.chosen ? 0 : -1} onClick={() => props.choose(tab.name)}>
              {tab.title}
            </button>
          )}
        </For>
      </div>
      <div class="tab-panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${props.chosen}`} tabIndex={0}>{props.children}</div>
    </>
  );
}
