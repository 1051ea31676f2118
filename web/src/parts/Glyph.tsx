// Marks: the shape says the state, the colour repeats it. Each stands beside its word, so readers skip it.
import { type JSX, Match, Show, Switch } from "solid-js";
import type { FreshnessState, Status, SyncState } from "../api/types";

const SHAPES: Record<Status, () => JSX.Element> = {
  Current: () => <><circle cx="6" cy="6" r="5" /><path d="m3.8 6.2 1.6 1.6 2.9-3.4" /></>,
  InProgress: () => <path d="M6 1a5 5 0 1 1-5 5" stroke-width="1.8" />,
  Failed: () => <><path class="solid" d="M3.9.9h4.2l3 3v4.2l-3 3H3.9l-3-3V3.9z" /><path class="cut" d="m4.2 4.2 3.6 3.6m0-3.6L4.2 7.8" /></>,
  NotFound: () => <circle cx="6" cy="6" r="5" stroke-dasharray="2.2 1.7" />,
  Terminating: () => <><circle cx="6" cy="6" r="5" /><path d="M3.8 6h4.4" /></>,
  Unknown: () => <><path d="M6 .8 11.2 6 6 11.2.8 6z" /><path d="M4.8 4.9a1.25 1.25 0 1 1 1.6 1.2c-.3.1-.4.3-.4.6" stroke-width="1.1" /><path d="M6 8.3v.1" /></>,
};

export function Glyph(props: { status: Status; freshness?: FreshnessState | undefined; size?: number }) {
  return (
    <svg class="glyph" data-status={props.status} data-freshness={props.freshness ?? "live"} viewBox="0 0 12 12"
      width={props.size ?? 12} height={props.size ?? 12} aria-hidden="true">
      {/* What is not live is drawn as an outline alone: nobody's green is a lost one's. */}
      <Show when={props.freshness && props.freshness !== "live"} fallback={SHAPES[props.status]()}>
        <Switch>
          <Match when={props.freshness === "lost"}><circle cx="6" cy="6" r="5" stroke-dasharray="1.4 1.6" /></Match>
          <Match when={true}><circle cx="6" cy="6" r="5" /><path d="M2.6 9.4 9.4 2.6M1.3 6.9l5.6-5.6M5.1 10.7l5.6-5.6" stroke-width="0.8" /></Match>
        </Switch>
      </Show>
    </svg>
  );
}

export function SyncGlyph(props: { state: SyncState }) {
  return (
    <svg class="glyph" data-sync={props.state} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      <Switch fallback={<path d="m2.5 6.3 2.2 2.2 4.8-5" />}>
        <Match when={props.state === "OutOfSync" || props.state === "Failed"}>
          <rect x="1" y="1" width="10" height="10" rx="1" /><path d="M3.6 4.8h4.8M3.6 7.2h4.8M7.4 3 4.6 9" />
        </Match>
        <Match when={props.state === "Suspended"}><rect x="1" y="1" width="10" height="10" rx="1" /><path d="M4.6 4v4m2.8-4v4" /></Match>
        <Match when={props.state === "Syncing"}><path d="M10 3.5A4.5 4.5 0 0 0 1.7 5M2 8.5A4.5 4.5 0 0 0 10.3 7M10.2 1.4v2.4H7.8M1.8 10.6V8.2h2.4" stroke-width="1.2" /></Match>
        <Match when={props.state === "Unknown"}><path d="M3.5 6h5" /></Match>
      </Switch>
    </svg>
  );
}

export function FreshGlyph(props: { state: FreshnessState }) {
  return (
    <svg class="glyph" data-fresh={props.state} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      <Switch>
        <Match when={props.state === "live"}><circle class="solid" cx="6" cy="6" r="3.6" /></Match>
        <Match when={props.state === "stale"}><circle cx="6" cy="6" r="4.4" /><path class="solid" d="M6 1.6a4.4 4.4 0 0 1 4.4 4.4H6z" /></Match>
        <Match when={true}><circle cx="6" cy="6" r="4.6" stroke-dasharray="1.6 1.6" /></Match>
      </Switch>
    </svg>
  );
}
