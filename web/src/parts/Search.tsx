// The search of the top bar: apps by key and clusters, while text is typed; Enter lists all apps that match.
import { createSignal, createUniqueId, For, onCleanup, Show } from "solid-js";
import { hub } from "../api/client";
import { createAnswer } from "../lib/answer";
import { go } from "../lib/router";
import { number } from "../lib/text";
import { Bar } from "./Bar";
import { Icon } from "./Icon";
import { Key, Text } from "./Text";

const QUIET = 120;
const MOST = 6;

export function Search() {
  const id = createUniqueId();
  const [text, setText] = createSignal("");
  const [asked, setAsked] = createSignal<string>();
  const [isOpen, setOpen] = createSignal(false);
  const [at, setAt] = createSignal(-1);
  let input!: HTMLInputElement;
  let timer: ReturnType<typeof setTimeout> | undefined;
  onCleanup(() => clearTimeout(timer));

  const [found] = createAnswer(asked, async (wanted, signal) => {
    const [apps, clusters] = await Promise.all([
      hub.groups({ text: wanted, "group-by": "key", limit: MOST, sort: "status" }, signal),
      hub.clusters({ text: wanted, limit: MOST }, signal),
    ]);
    return { apps, clusters };
  });
  const hits = () => [
    ...(found.data?.apps.items ?? []).map((group) => ({ href: `/apps?${new URLSearchParams({ text: group.group })}`, label: group.group, kind: "app", group })),
    ...(found.data?.clusters.items ?? []).map((row) => ({ href: `/clusters?${new URLSearchParams({ open: row.name })}`, label: row.name, kind: "cluster", group: row })),
  ];

  function type(value: string) {
    setText(value);
    setAt(-1);
    setOpen(value.trim() !== "");
    clearTimeout(timer);
    timer = setTimeout(() => setAsked(value.trim() || undefined), QUIET);
  }
  function leave(to: string) {
    setOpen(false);
    setText("");
    setAsked(undefined);
    input.blur();
    go(to);
  }
  function onKeyDown(event: KeyboardEvent) {
    if (event.key === "Escape") {
      event.preventDefault();
      if (!text()) input.blur();
      type("");
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const n = hits().length;
      if (n) setAt((was) => (event.key === "ArrowDown" ? (was + 1) % n : (was + n - 1 + (was < 0 ? 1 : 0)) % n));
    } else if (event.key === "Enter" && text().trim()) {
      leave(hits()[at()]?.href ?? `/apps?${new URLSearchParams({ text: text().trim() })}`);
    }
  }

  return (
    <div class="search" role="search" onFocusOut={(event) => event.currentTarget.contains(event.relatedTarget as Node) || setOpen(false)}>
      <Icon name="search" size={14} />
      <input ref={input} data-search type="search" placeholder="Search apps, clusters, messages" aria-label="Search apps, clusters, messages"
        role="combobox" aria-expanded={isOpen()} aria-controls={id} aria-autocomplete="list" autocomplete="off" spellcheck={false}
        aria-activedescendant={at() >= 0 ? `${id}-${at()}` : undefined} value={text()}
        onInput={(event) => type(event.currentTarget.value)} onFocus={() => setOpen(text() !== "")} onKeyDown={onKeyDown} />
      <kbd aria-hidden="true">/</kbd>
      <div class="search-list" hidden={!isOpen()}>
       <div id={id} role="listbox" aria-label="Matches">
        <For each={hits()}>
          {(hit, index) => (
            <div class="search-hit" role="option" id={`${id}-${index()}`} aria-selected={index() === at()}
              onMouseDown={(event) => event.preventDefault()} onClick={() => leave(hit.href)}>
              <Icon name={hit.kind === "app" ? "apps" : "clusters"} size={14} />
              <span class="clip grow"><Show when={hit.kind === "app"} fallback={<Text value={hit.label} />}><Key value={hit.label} /></Show></span>
              <span class="search-bar"><Bar counts={hit.group.counts} /></span>
              <span class="muted num search-count">{number(hit.group.apps)}</span>
            </div>
          )}
        </For>
       </div>
        <Show when={text().trim()}>
          <p class="search-all muted">
            {found.data && !hits().length ? "No name matches. " : ""}<kbd>Enter</kbd> lists all apps with this text, messages included
          </p>
        </Show>
      </div>
    </div>
  );
}

export const focusSearch = () => document.querySelector<HTMLInputElement>("[data-search]")?.focus();
