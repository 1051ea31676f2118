import { For, Show } from "solid-js";
import { go, withQuery } from "../lib/router";
import { Text } from "./Text";

/** Parts of the address that make no sense; the view shows the rest. */
export const Refused = (props: { list: { name: string; title: string; why: string }[] }) => (
  <Show when={props.list.length}>
    <ul class="refused" role="alert">
      <For each={props.list}>
        {({ name, title, why }) => (
          <li>
            <span class="strong">{title} is left out:</span> <Text value={why} />{" "}
            <button type="button" class="plain link" onClick={() => go(withQuery({ [name]: undefined }), { replace: true })}>Remove it</button>
          </li>
        )}
      </For>
    </ul>
  </Show>
);
