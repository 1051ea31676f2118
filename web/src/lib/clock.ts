// The hub's clock. Ages are told by it, since the clock of this machine may be wrong.
import { createSignal } from "solid-js";

let base: number | undefined;
let basedAt = 0;

const [tick, setTick] = createSignal(0);
setInterval(() => document.hidden || setTick((n) => n + 1), 1000);
document.addEventListener("visibilitychange", () => document.hidden || setTick((n) => n + 1));

/** Takes the time of an answer. An older answer that comes late never turns the clock back. */
export function heard(asOf: string | undefined) {
  const at = asOf ? Date.parse(asOf) : NaN;
  if (Number.isNaN(at)) return;
  const running = base === undefined ? -Infinity : base + performance.now() - basedAt;
  if (base === undefined || at > running) {
    base = at;
    basedAt = performance.now();
  }
}

/** The present time of the hub, which makes its reader run again each second. */
export function hubNow(): number {
  tick();
  return base === undefined ? Date.now() : base + performance.now() - basedAt;
}
