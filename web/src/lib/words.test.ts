import { expect, it } from "vitest";
import { nodesWord } from "./words";

it("calls no node ready that nobody observes now", () => {
  const nodes = { ready: 2, total: 3 };
  expect(nodesWord({ nodes }, true)).toBe("2/3");
  expect(nodesWord({ nodes }, false)).toBe("was 2/3");
  expect(nodesWord({ nodesUnobserved: "forbidden" }, true)).toBe("Unknown");
  expect(nodesWord({}, true)).toBeUndefined();
});
