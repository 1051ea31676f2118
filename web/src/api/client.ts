// Asks the hub. Knows of sessions only that a 401 ends one.
import { createSignal } from "solid-js";
import type * as Api from "./types";
import { heard } from "../lib/clock";

/** Parameters of a request; a list stands for the parameter several times, undefined for none. */
export type Params = Record<string, string | number | boolean | readonly string[] | undefined>;

/** A refusal of the hub, or its silence (`status` 0). */
export class HubError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint?: string,
    readonly question?: Api.QuestionError,
  ) {
    super(message);
  }
  /** The name of the parameter that makes no sense, if that is the reason. */
  get parameter(): string | undefined {
    return this.status === 400 ? /^parameter '([^']+)'/.exec(this.message)?.[1] : undefined;
  }
}

const [ended, setEnded] = createSignal(false);
/** True once the hub has refused the session; only a new address from the command line opens another one. */
export const sessionEnded = ended;
export const endSession = () => setEnded(true);
/** Another tab has opened a session, whose cookie is that of this tab, too. */
export const resumeSession = () => setEnded(false);

export function query(params: Params): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  const text = search.toString();
  return text ? `?${text}` : "";
}

/** The longest time for an answer: a request that is lost on its way has neither an answer nor an error. */
const PATIENCE = 30_000;

async function ask<T>(path: string, init: RequestInit, take: (response: Response) => Promise<unknown> = (response) => response.json(), patience: number | undefined = PATIENCE): Promise<T> {
  const limits = [init.signal, patience === undefined ? undefined : AbortSignal.timeout(patience)].filter((one) => one instanceof AbortSignal);
  /** The error of a request that its caller did not abort. */
  const silent = (error: unknown) => (init.signal?.aborted ? error : new HubError(0, "The hub does not answer."));
  let response: Response;
  try {
    response = await fetch(`/api/v1/${path}`, { credentials: "same-origin", ...init, signal: AbortSignal.any(limits) });
  } catch (error) {
    throw silent(error);
  }
  if (response.ok) {
    const answer = response.status === 204 ? undefined : await take(response).catch((error: unknown) => {
      // The connection broke off, or the time is up.
      throw error instanceof DOMException || error instanceof TypeError ? silent(error) : error;
    });
    heard((answer as { asOf?: string } | undefined)?.asOf);
    return answer as T;
  }
  if (response.status === 401) setEnded(true);
  // A proxy in between answers for a hub that is away.
  if (response.status === 502 || response.status === 504) throw new HubError(0, "The hub does not answer.");
  const problem = await response.json().catch(() => undefined) as Api.HttpProblem | undefined;
  const detail = problem?.detail ?? `The hub answered with status ${response.status}.`;
  throw new HubError(response.status, detail, problem?.hint ?? undefined, problem?.question ?? undefined);
}

const read = <T>(path: string, params: Params, signal?: AbortSignal) =>
  ask<T>(path + query(params), signal ? { signal } : {});

const post = <T>(path: string, body: unknown, signal?: AbortSignal) =>
  ask<T>(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });

const segments = (...parts: string[]) => parts.map((part) => encodeURIComponent(part || "-")).join("/");

/** The name of one app in one cluster; `home` only where another cluster declares it. */
export interface AppRef {
  cluster: string;
  delivery: string;
  namespace: string;
  name: string;
  home?: string | undefined;
}

const refPath = (ref: AppRef) => segments(ref.cluster, ref.delivery, ref.namespace, ref.name);

/** A line of a log. */
export interface LogText {
  /** The time at which it was written, as the server tells it; empty if it does not. */
  at: string;
  text: string;
  /** True if lines before it were not read. */
  isAfterGap?: boolean;
}

function logText(line: string): LogText {
  const cut = line.indexOf(" ");
  const at = cut > 0 && /^\d{4}-\d\d-\d\dT/.test(line) ? line.slice(0, cut) : "";
  return { at, text: at ? line.slice(cut + 1) : line };
}

/** The lines of one container, as far as they could be read. */
export interface ContainerLog {
  subject: Api.LogSubject;
  lines: LogText[];
  failure: string | undefined;
}

/** Reads logs that are not followed; the answer is an event on each line. */
async function readLogs(question: Pick<Api.LogsQuestion, "what" | "previous" | "clusters" | "tail" | "sinceMillis">, signal?: AbortSignal) {
  const body: Api.LogsQuestion = { allNamespaces: false, allPods: false, container: null, follow: false, namespace: null, sinceMillis: null, timestamps: true, ...question };
  const text = await ask<string>("logs", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), ...(signal ? { signal } : {}),
  }, (response) => response.text());
  const logs: ContainerLog[] = [];
  let leftOut = 0;
  for (const line of text.split("\n").filter(Boolean)) {
    const event = JSON.parse(line) as Api.LogEvent;
    if (!("event" in event)) continue;
    if (event.event === "logs") logs.push(...event.subjects.map((subject) => ({ subject, lines: [], failure: undefined })));
    else if (event.event === "lines") logs[event.log]?.lines.push(...event.lines.map((one) => logText(one.text)));
    else if (event.event === "chosen") leftOut = event.well;
    else if (event.event === "failed") { const log = logs[event.log]; if (log) log.failure = event.message; }
    else if (event.event === "refused") throw new HubError(403, event.message);
  }
  return { logs, leftOut };
}

/** Runs a plan, or joins the run that has its identifier, and calls `take` with each event. Returns when the answer ends. */
async function run(request: Api.RunRequest, take: (event: Api.OperationEvent) => void) {
  await ask<void>("operations", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(request),
  }, async (response) => {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
        const lines = (rest + part.value).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines.filter(Boolean)) take(JSON.parse(line) as Api.OperationEvent);
      }
    } catch (error) {
      // The connection broke off, or what stands in between sent something else.
      throw new HubError(0, `The hub no longer answers: ${String(error)}`);
    }
    // It lasts as long as what it does.
  }, undefined);
}

type Question<V extends string> = Extract<Api.ViewQuestion, { view: V }>;

export const hub = {
  session: (token: string) => post<void>("session", { token }),
  apps: (params: Params, signal?: AbortSignal) => read<Api.AppList>("apps", params, signal),
  /** The apps as they were at the moment `at`. */
  past: (params: Params & { at: string }, signal?: AbortSignal) => read<Api.PastAppList>("apps", params, signal),
  groups: (params: Params & { "group-by": string }, signal?: AbortSignal) =>
    read<Api.AppGroupList>("apps", params, signal),
  app: (ref: AppRef, signal?: AbortSignal) => read<Api.AppList>(`apps/${refPath(ref)}`, { home: ref.home }, signal),
  history: (ref: AppRef, params: Params, signal?: AbortSignal) =>
    read<Api.AppHistory>(`history/${refPath(ref)}`, { home: ref.home, ...params }, signal),
  clusters: (params: Params, signal?: AbortSignal) => read<Api.ClusterList>("clusters", params, signal),
  attention: (params: Params, signal?: AbortSignal) => read<Api.Attention>("attention", params, signal),
  changes: (params: Params, signal?: AbortSignal) => read<Api.AppChangeList>("changes", params, signal),
  matrix: (params: Params, signal?: AbortSignal) => read<Api.Matrix>("matrix", params, signal),
  detail: (question: Question<"app">, signal?: AbortSignal) => post<Api.AppAnswer>("questions", question, signal),
  tree: (question: Question<"tree">, signal?: AbortSignal) => post<Api.TreeAnswer>("questions", question, signal),
  events: (question: Question<"events">, signal?: AbortSignal) => post<Api.EventsAnswer>("questions", question, signal),
  explain: (question: Question<"explain">, signal?: AbortSignal) =>
    post<Api.ExplainAnswer>("questions", question, signal),
  trust: (question: Question<"trust">, signal?: AbortSignal) => post<Api.TrustAnswer>("questions", question, signal),
  object: (question: Question<"object">, signal?: AbortSignal) => post<Api.ObjectAnswer>("questions", question, signal),
  logs: readLogs,
  /** Lists the actions of the object that a question names. */
  actions: (question: Api.ActionQuestion, signal?: AbortSignal) => post<Api.ObjectActionList>("actions", question, signal),
  /** Plans an operation; nothing is written. */
  plan: (question: Api.OperationQuestion, signal?: AbortSignal) => post<Api.PlanAnswer>("plans", question, signal),
  run,
};
