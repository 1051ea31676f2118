// Holds the one event stream of all tabs of a browser, which has six connections to a hub and not more.
import type { StreamFrame } from "../api/types";
import type { ToTab, ToWorker } from "./messages";
import { createStream, MOST_VIEWS } from "./stream";

interface Tab {
  port: MessagePort;
  views: [name: string, view: string][];
}

const tabs = new Set<Tab>();
/** The names by which the stream calls the views, of which several tabs may show the same. */
const names = new Map<string, string>();
let given = 0;

const tell = (tab: Tab, message: ToTab) => tab.port.postMessage(message);
const tellAll = (message: ToTab) => tabs.forEach((tab) => tell(tab, message));

const stream = createStream({
  link: (isLive) => tellAll({ type: "link", isLive }),
  refused: () => tellAll({ type: "refused" }),
  frame: (frame, isReset) => tabs.forEach((tab) => tell(tab, { type: "frame", frame: ofTab(tab, frame), isReset })),
});

/** The pages of a frame that a tab shows, by the tab's own names. */
function ofTab(tab: Tab, frame: StreamFrame): StreamFrame {
  const pages = frame.pages.flatMap((page) =>
    tab.views.filter(([, view]) => names.get(view) === page.name).map(([name]) => ({ ...page, name })),
  );
  return { ...frame, pages };
}

/** Follows what any tab shows; what many tabs show comes first, and above the hub's limit the rest is left to the tabs. */
function followAll() {
  const shown = new Map<string, number>();
  for (const { views } of tabs) for (const [, view] of views) shown.set(view, (shown.get(view) ?? 0) + 1);
  const wanted = [...shown].sort((a, b) => b[1] - a[1]).slice(0, MOST_VIEWS).map(([view]) => view);
  names.clear();
  for (const view of wanted) names.set(view, `v${++given}`);
  stream.follow(new Map(wanted.map((view) => [names.get(view) ?? "", view])));
}

function leave(tab: Tab) {
  tabs.delete(tab);
  tab.port.close();
  followAll();
}

addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0];
  if (!port) return;
  const tab: Tab = { port, views: [] };
  tabs.add(tab);
  port.onmessage = ({ data }: MessageEvent<ToWorker>) => {
    if (data.type === "views") {
      tab.views = data.views;
      followAll();
    } else if (data.type === "session") {
      tellAll({ type: "session" });
      stream.retry();
    } else {
      // The lock is free once the tab is gone, however it went.
      void navigator.locks.request(data.lock, () => leave(tab));
    }
  };
});
