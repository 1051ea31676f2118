import { render } from "solid-js/web";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/grid.css";
import "./styles/views.css";
import "./styles/app.css";
import { App } from "./App";
import { startKeys } from "./lib/keys";
import { startLive } from "./live/live";
import { takeLinks } from "./lib/router";
import { openSession } from "./lib/session";

const root = document.getElementById("root");
// The session comes first: what is asked before it would be refused.
void openSession().then((isNew) => {
  takeLinks();
  startKeys();
  if (root) render(() => <App />, root);
  startLive(isNew);
});
