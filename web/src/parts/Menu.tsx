// A button with a floating list of choices, each of which can be on.
import { createSignal, createUniqueId, For, onCleanup, Show } from "solid-js";
import { number } from "../lib/text";
import { Icon } from "./Icon";
import { Text } from "./Text";

export interface Choice {
  value: string;
  label: string;
  count?: number | undefined;
}

export function Menu(props: {
  label: string;
  chosen: readonly string[];
  choices: Choice[] | undefined;
  choose: (value: string) => void;
  /** Called when the list opens, to read what it offers. */
  onOpen?: () => void;
  isSingle?: boolean;
  /** True while what is chosen is the standard, which needs no emphasis. */
  isQuiet?: boolean;
  /** True where the button does not name what is chosen. */
  isSilent?: boolean;
  note?: string | undefined;
}) {
  const id = createUniqueId();
  const [isOpen, setOpen] = createSignal(false);
  let box!: HTMLDivElement;
  const buttons = () => [...box.querySelectorAll<HTMLButtonElement>("[role^=menuitem]")];
  const close = (back: boolean) => {
    setOpen(false);
    if (back) box.querySelector<HTMLButtonElement>(".menu-button")?.focus();
  };
  const outside = (event: Event) => isOpen() && !box.contains(event.target as Node) && close(false);
  document.addEventListener("pointerdown", outside);
  onCleanup(() => document.removeEventListener("pointerdown", outside));

  function onKeyDown(event: KeyboardEvent) {
    if (!isOpen()) return;
    if (event.key === "Escape" || event.key === "Tab") {
      if (event.key === "Escape") event.preventDefault();
      return close(event.key === "Escape");
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = buttons();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    all[(at + step + all.length) % all.length]?.focus();
  }
  function toggle() {
    if (isOpen()) return close(false);
    props.onOpen?.();
    setOpen(true);
    queueMicrotask(() => buttons()[0]?.focus());
  }

  return (
    <div class="menu" ref={box} onKeyDown={onKeyDown}>
      <button type="button" class="chip menu-button" data-on={props.chosen.length > 0 && !props.isQuiet} aria-haspopup="menu" aria-expanded={isOpen()} aria-controls={id} onClick={toggle}>
        <span>{props.label}</span>
        <Show when={props.chosen.length && !props.isSilent}>
          <span class="chip-value clip">{props.chosen.map((one) => props.choices?.find((choice) => choice.value === one)?.label ?? one).join(", ")}</span>
        </Show>
        <Icon name="down" size={12} />
      </button>
      <Show when={isOpen()}>
        <div class="menu-list" id={id} role="menu" aria-label={props.label}>
          <Show when={props.choices} fallback={<p class="muted menu-note">Reading the choices</p>}>
            <For each={props.choices} fallback={<p class="muted menu-note">Nothing to choose from</p>}>
              {(choice) => (
                <button type="button" class="menu-item" role={props.isSingle ? "menuitemradio" : "menuitemcheckbox"} tabIndex={-1}
                  aria-checked={props.chosen.includes(choice.value)}
                  onClick={() => { props.choose(choice.value); if (props.isSingle) close(true); }}>
                  <span class="menu-tick"><Show when={props.chosen.includes(choice.value)}><Icon name="check" size={12} /></Show></span>
                  <span class="clip grow"><Text value={choice.label} /></span>
                  <Show when={choice.count !== undefined}><span class="muted num">{number(choice.count ?? 0)}</span></Show>
                </button>
              )}
            </For>
          </Show>
          <Show when={props.note}><p class="muted menu-note">{props.note}</p></Show>
        </div>
      </Show>
    </div>
  );
}
