// The tree of an app, as views read it: its objects, and what controllers made of them.
import { type AppRef, hub } from "../api/client";
import { createAnswer } from "./answer";
import { useKeys } from "./keys";
import { fullName } from "./refs";
import { go, param, withQuery } from "./router";

/** Reads the tree of an app, again when the fleet has changed; with `isWhole` equal children are not folded to "37 more". */
export const createTree = (app: () => AppRef, isWhole: () => boolean = () => false) =>
  createAnswer(
    () => ({ name: fullName(app()), cluster: app().cluster, fold: !isWhole() }),
    async ({ name, cluster, fold }, signal) => {
      const data = await hub.tree({ view: "tree", name, status: null, compact: false, fold, apps: { clusters: [cluster], namespace: null } }, signal);
      return { root: data.items[0]?.root };
    },
    { every: 5000 },
  );

/** True if the address asks for what is not well alone. */
export const onlyUnwell = () => param("unwell") === "1";
export const setOnlyUnwell = (is: boolean) => go(withQuery({ unwell: is ? "1" : undefined }), { replace: true });
/** Adds the key for it. */
export const useUnwellKey = () => useKeys("App", [{ keys: "z", what: "Problems only", act: () => setOnlyUnwell(!onlyUnwell()) }]);
