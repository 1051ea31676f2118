// Plans operations and follows their runs. A run has an identifier, so that a lost connection can be opened again and
// nothing is written twice.
import { hub, HubError } from "../api/client";
import type { OperationEvent, OperationQuestion, Outcome, PlanAnswer, Verb } from "../api/types";

/** The progress of an item of a run. */
export interface ItemRun {
  /** The step that is done or waited for now; empty before the item begins. */
  doing: string;
  outcome: Outcome | undefined;
}

/** The number of connections without news after which no other one is opened. */
const LOST = 20;
/** The time for a run, as the commands have it. */
const TIMEOUT_MILLIS = 300_000;

/** 128 random bits, in hexadecimal digits. */
export const newRunId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Runs a plan under the identifier `id`, and calls `take` with the state of each item as it changes. */
export async function runPlan(id: string, question: OperationQuestion, plan: PlanAnswer, confirmed: number, take: (item: number, run: Partial<ItemRun>) => void) {
  const request = { id, question, plannedAt: plan.plannedAt, digest: plan.digest, confirmed, dryRun: false, waits: true, timeoutMillis: TIMEOUT_MILLIS };
  let isDone = false;
  let refusal: HubError | undefined;
  let lost = 0;
  // A connection that is opened again begins with the events that came before.
  let known = 0;
  let count = 0;
  function note(event: OperationEvent) {
    count += 1;
    if (count > known) {
      known = count;
      lost = 0;
    }
    switch (event.event) {
      case "writing": return take(event.item, { doing: "Writing" });
      case "written": return take(event.item, { doing: event.isStored ? "Written" : "Accepted" });
      case "waiting": return event.items.forEach(({ item, why }) => take(item, { doing: why }));
      case "ended": return take(event.item, { outcome: event.outcome });
      case "refused": refusal = new HubError(409, event.message, event.hint ?? undefined); return;
      case "done": isDone = true;
    }
  }
  for (let isFirst = true; ; isFirst = false) {
    count = 0;
    try {
      await hub.run(request, note);
    } catch (error) {
      // A refusal of the first request: nothing was sent. Any other: the run goes on without this page.
      if (isFirst && error instanceof HubError && error.status > 0) throw error;
    }
    if (isDone) return;
    if (refusal) throw refusal;
    if (lost === LOST) throw new HubError(0, "The hub no longer tells of the operation, which may go on.");
    lost += 1;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

export type VerbName = "reconcile" | "suspend" | "resume";

export const VERB_TITLES: Record<VerbName, string> = { reconcile: "Reconcile", suspend: "Suspend", resume: "Resume" };

export const verbName = (verb: Verb): VerbName => (typeof verb === "string" ? verb : "reconcile");

/** An option of `reconcile`, for the tools that have it. */
export interface Option {
  name: "withSource" | "force" | "reset" | "hard" | "sync";
  flag: string;
  title: string;
}

const OPTIONS: Record<Option["name"], Omit<Option, "name">> = {
  withSource: { flag: "--with-source", title: "Fetch the source first" },
  force: { flag: "--force", title: "Upgrade the release even if nothing changed" },
  reset: { flag: "--reset", title: "Forget failed attempts" },
  sync: { flag: "--sync", title: "Sync, not only compare" },
  hard: { flag: "--hard", title: "Render the manifests anew" },
};

const OF_DELIVERY: Record<string, Option["name"][]> = {
  "flux-kustomization": ["withSource"],
  "flux-helmrelease": ["withSource", "force", "reset"],
  "argo-application": ["sync", "hard"],
};

/** The options of `reconcile` for a delivery tool; undefined for one that takes no requests. */
export const optionsOf = (delivery: string): Option[] | undefined => OF_DELIVERY[delivery]?.map((name) => ({ name, ...OPTIONS[name] }));

/** The result of an item in words, and whether it is good (`true`), bad or neither (`undefined`). */
export function outcomeWords(outcome: Outcome, verb: string): { text: string; why: string; isGood: boolean | undefined } {
  const done = { suspend: "Suspended", resume: "Resumed", reconcile: "Requested" }[verb] ?? "Done";
  switch (outcome.result) {
    case "unchanged": return { text: "Nothing to do", why: "", isGood: undefined };
    case "refused": return { text: "Skipped", why: "", isGood: undefined };
    case "accepted": return { text: "Accepted, not written", why: "", isGood: undefined };
    case "done": return { text: done, why: "", isGood: true };
    case "ready": return { text: `Ready after ${(outcome.afterMillis / 1000).toFixed(1)} s${outcome.isOutOfSync ? ", but out of sync" : ""}`, why: outcome.message, isGood: true };
    case "failed": return { text: `Failed after ${(outcome.afterMillis / 1000).toFixed(1)} s`, why: outcome.why, isGood: false };
    case "unobservable": return { text: `${done}; whether it is ready is not known`, why: outcome.why, isGood: undefined };
    case "timedOut": return { text: "Not ready in time", why: outcome.why, isGood: undefined };
    case "error": return { text: "Error", why: outcome.error.message + (outcome.error.hint ? ` (${outcome.error.hint})` : ""), isGood: false };
    case "interrupted": return { text: { made: "Written; its result is not known", notMade: "The change is not there", unknown: "Not known", unread: "Not known" }[outcome.trace], why: outcome.why, isGood: undefined };
  }
}
