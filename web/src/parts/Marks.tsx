// The three marks of a row: health, sync and freshness, each with its word.
import { Show } from "solid-js";
import type { Freshness, FreshnessState, PairState, Status, SyncState } from "../api/types";
import { hubAway } from "../live/live";
import { pastFreshness, spaced, statusWord } from "../lib/words";
import { FreshGlyph, Glyph, SyncGlyph } from "./Glyph";

/**
 * The status now. Of what is not live it names the last one as past ("was Ready"), and while the hub is away all is so;
 * so it is of a row that is no longer at its place of the list: gone, no match any more, or moved far away. `past` is
 * given for an object that is gone, or could not be read again.
 */
export function StatusMark(props: { health: Status; effective: Status; freshness?: Freshness | null | undefined; suspended?: boolean; said?: boolean | undefined; hasLeft?: boolean; past?: "gone" | "unread" | undefined }) {
  const freshness = (): FreshnessState => {
    if (props.hasLeft || props.past) return "lost";
    const own = props.freshness?.state ?? "live";
    return own === "live" && hubAway() ? "stale" : own;
  };
  const isPast = () => freshness() !== "live";
  const word = () =>
    props.hasLeft ? "left" : props.past === "gone" ? `gone, was ${statusWord(props.health)}` : isPast() ? (props.freshness?.observedAt || hubAway() ? `was ${statusWord(props.health)}` : "never seen") : statusWord(props.effective);
  return (
    <span class="mark" data-status={isPast() ? "Unknown" : props.effective} data-freshness={freshness()} title={props.hasLeft ? `It was ${statusWord(props.health)}; it is no longer at this place of the list` : undefined}>
      <Glyph status={props.effective} freshness={freshness()} />
      <span class="mark-word">{word()}</span>
      <Show when={props.hasLeft}><span class="reader">, was {statusWord(props.health)}</span></Show>
      <Show when={isPast() && !props.hasLeft && props.past !== "gone"}><span class="reader">, {freshness() === "lost" ? "lost" : "stale"}</span></Show>
      <Show when={props.said && !props.hasLeft}><span class="muted" title="A controller says so; the hub did not read the objects">said</span></Show>
      <Show when={props.suspended}><span class="mark-suspended" title="Suspended in its delivery tool"><SyncGlyph state="Suspended" /><span class="reader">suspended</span></span></Show>
    </span>
  );
}

/** The status at a past moment: of what was not live then, the last one that was known. */
export function PastMark(props: { state: Pick<PairState, "health" | "effective" | "problem"> }) {
  const isUnrecorded = () => props.state.problem === "not recorded";
  const freshness = () => (isUnrecorded() ? "lost" : pastFreshness(props.state.problem));
  const word = () => (isUnrecorded() ? "not recorded" : freshness() === "live" ? statusWord(props.state.effective) : `was ${statusWord(props.state.health)}`);
  return (
    <span class="mark" data-status={freshness() === "live" ? props.state.effective : "Unknown"} data-freshness={freshness()}>
      <Glyph status={props.state.effective} freshness={freshness()} />
      <span class="mark-word">{word()}</span>
      <Show when={freshness() !== "live" && !isUnrecorded()}><span class="reader">, {freshness()}</span></Show>
    </span>
  );
}

/** The sync state now, or with `isPast` at a past moment, which a hub that is away does not make older. */
export function SyncMark(props: { state: SyncState; isPast?: boolean }) {
  const isOld = () => hubAway() && !props.isPast;
  return (
    <span class="mark sync-mark" data-sync={props.state} data-freshness={isOld() ? "stale" : undefined}>
      <SyncGlyph state={props.state} />
      <span class="mark-word">{isOld() ? `was ${spaced(props.state)}` : spaced(props.state)}</span>
    </span>
  );
}

export function FreshMark(props: { state: FreshnessState; text?: string }) {
  const state = () => (props.state === "live" && hubAway() ? "stale" : props.state);
  return (
    <span class="mark" data-fresh={state()}>
      <FreshGlyph state={state()} />
      <span class="mark-word">{props.text ?? state()}</span>
    </span>
  );
}
