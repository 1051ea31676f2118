import { beforeAll, describe, expect, it, vi } from "vitest";

let lib: typeof import("./command");
beforeAll(async () => {
  vi.stubGlobal("location", { origin: "http://127.0.0.1:7655" });
  lib = await import("./command");
});

describe("commands", () => {
  it("quotes what a shell would read otherwise", () => {
    expect(lib.command("get", "apps", "--status", "!Ready")).toBe("taffrail get apps --status '!Ready' --hub http://127.0.0.1:7655");
    expect(lib.quote("it's $(here)")).toBe("'it'\\''s $(here)'");
  });
  it("names filters as the flags of the command do", () => {
    expect(lib.listFlags({ status: ["Failed", "Unknown"], problems: ["sync"], suspended: ["true"] })).toEqual([
      "--status", "Failed,Unknown", "--problems=sync", "--suspended",
    ]);
  });
});
