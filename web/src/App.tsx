import { createEffect, ErrorBoundary, lazy, Match, Show, Suspense, Switch } from "solid-js";
import { useKeys } from "./lib/keys";
import { hubAway } from "./live/live";
import { parseObject } from "./lib/objects";
import { rail, setTheme, theme } from "./lib/prefs";
import { parseRef } from "./lib/refs";
import { moveRow } from "./lib/rows";
import { afterMove, go, param, place } from "./lib/router";
import { Help, showHelp } from "./parts/Help";
import { HubNote, Note } from "./parts/Notes";
import { Rail } from "./parts/Rail";
import { focusSearch } from "./parts/Search";
import { TopBar } from "./parts/TopBar";
import { Attention } from "./views/attention/Attention";
import { Apps } from "./views/apps/Apps";
import { Clusters } from "./views/clusters/Clusters";

const AppPage = lazy(() => import("./views/app/AppPage"));
const Matrix = lazy(() => import("./views/matrix/Matrix"));
const ObjectPage = lazy(() => import("./views/object/ObjectPage"));
const SearchPage = lazy(() => import("./views/search/SearchPage"));
const Time = lazy(() => import("./views/time/Time"));

const TITLES: Record<string, string> = { "/": "Attention", "/apps": "Apps", "/clusters": "Clusters", "/matrix": "Matrix", "/search": "Search", "/time": "Time" };
const APP = "/app/";
const OBJECT = "/object/";

export function App() {
  createEffect(() => {
    const root = document.documentElement;
    if (theme() === "auto") delete root.dataset["theme"];
    else root.dataset["theme"] = theme();
    root.dataset["hub"] = hubAway() ? "away" : "live";
  });
  const path = () => place().path;
  const shownApp = () => (path().startsWith(APP) ? parseRef(path().slice(APP.length), param("home")) : undefined);
  const shownObject = () => (path().startsWith(OBJECT) ? parseObject(path().slice(OBJECT.length)) : undefined);
  createEffect(() => {
    document.title = `${shownApp()?.name ?? shownObject()?.object.name ?? TITLES[path()] ?? "Not found"} · Taffrail`;
  });
  // Readers hear of another view as of another page.
  let main!: HTMLElement;
  let shown = path();
  afterMove(() => {
    if (path() === shown) return;
    shown = path();
    main.focus({ preventScroll: true });
  });

  useKeys("Everywhere", [
    { keys: "g a", what: "Needs attention", act: () => go("/") },
    { keys: "g p", what: "Apps", act: () => go("/apps") },
    { keys: "g c", what: "Clusters", act: () => go("/clusters") },
    { keys: "g m", what: "Matrix", act: () => go("/matrix") },
    { keys: "g s", what: "Search, as a view", act: () => go("/search") },
    { keys: "g t", what: "Time: the apps at a past moment", act: () => go("/time") },
    { keys: "/", what: "Search", act: focusSearch },
    { keys: "j", what: "Next row", act: () => moveRow(1) },
    { keys: "k", what: "Previous row", act: () => moveRow(-1) },
    { keys: "c", what: "Copy the command of this view", act: () => [...document.querySelectorAll<HTMLElement>("[data-copy=main]")].at(-1)?.click() },
    { keys: "t", what: "Switch between light and dark", act: () => setTheme(isDark() ? "light" : "dark") },
    { keys: "?", what: "This table", act: showHelp },
  ]);

  return (
    <div class="frame" data-rail={rail()}>
      <a class="skip button" href="#main" onClick={(event) => { event.preventDefault(); main.focus(); }}>Skip to the view</a>
      <Rail />
      <TopBar />
      <main id="main" tabIndex={-1} ref={main}>
        <HubNote />
        <ErrorBoundary fallback={(error, reset) => (
          <Note kind="error" title="This view failed to draw." action={<button type="button" class="button" onClick={reset}>Draw it again</button>}>{String(error)}</Note>
        )}>
          <Suspense>
            <Switch fallback={<Nowhere />}>
              <Match when={path() === "/"}><Attention /></Match>
              <Match when={path() === "/apps"}><Apps /></Match>
              <Match when={path() === "/clusters"}><Clusters /></Match>
              <Match when={path() === "/matrix"}><Matrix /></Match>
              <Match when={path() === "/search"}><SearchPage /></Match>
              <Match when={path() === "/time"}><Time /></Match>
              <Match when={shownApp()}>{(ref) => <AppPage app={ref()} isPage />}</Match>
              <Match when={shownObject()}>{(ref) => <ObjectPage subject={ref()} />}</Match>
            </Switch>
          </Suspense>
          {/* A boundary of its own, so that the list stays, with its focus, while the drawer's code is read. */}
          <Suspense>
            <Show when={!shownApp() && !shownObject() && parseRef(param("app"), param("home"))}>{(ref) => <AppPage app={ref()} isPage={false} />}</Show>
          </Suspense>
        </ErrorBoundary>
      </main>
      <Help />
    </div>
  );
}

const isDark = () => theme() === "dark" || (theme() === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);

const Nowhere = () => (
  <div class="view">
    <h1>No view has this address.</h1>
    <p><a class="button" href="/">Needs attention</a></p>
  </div>
);
