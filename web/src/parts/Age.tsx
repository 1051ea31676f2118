import { Show } from "solid-js";
import { hubNow } from "../lib/clock";
import { age, exact } from "../lib/text";

/** The age of a time by the hub's clock; the exact time is in reach. */
export function Age(props: { since: string | null | undefined; suffix?: string }) {
  return (
    <Show when={props.since}>
      {(since) => (
        <time class="nowrap" dateTime={since()} title={exact(since())}>
          {age(hubNow() - Date.parse(since()))}{props.suffix ?? ""}
        </time>
      )}
    </Show>
  );
}
