import { describe, expect, it } from "vitest";
import { age, count, pieces, plain, shortRevision } from "./text";

describe("text of others", () => {
  it("shows bidi controls, control characters and invisible ones as escapes", () => {
    expect(plain("a\u202eb")).toBe("a\\u202eb");
    expect(plain("bell\u0007 zero\u200bwidth \u2066isolate\u2069")).toBe("bell\\u0007 zero\\u200bwidth \\u2066isolate\\u2069");
    expect(plain("tag\u{e0041}")).toBe("tag\\u{e0041}");
  });
  it("leaves other scripts, emoji and markup as they are", () => {
    for (const text of ["שלום", "مرحبا", "日本語", "🚢 shop", "<b>&amp;</b>"]) expect(pieces(text)).toEqual([{ text, isEscape: false }]);
  });
  it("marks escapes apart from the text around them", () => {
    expect(pieces("a\u202e\u202db")).toEqual([
      { text: "a", isEscape: false },
      { text: "\\u202e\\u202d", isEscape: true },
      { text: "b", isEscape: false },
    ]);
  });
});

describe("numbers and times", () => {
  it("prints ages in the largest unit, never below zero", () => {
    expect([-5, 0, 999, 61_000, 3_600_000, 90_000_000].map(age)).toEqual(["0s", "0s", "0s", "1m", "1h", "1d"]);
  });
  it("counts with the word's plural", () => {
    expect([count(1, "app"), count(1204, "app"), count(0, "cluster is", "clusters are")]).toEqual(["1 app", "1,204 apps", "0 clusters are"]);
  });
  it("shortens hashes of revisions but no versions", () => {
    expect(shortRevision("main@sha1:cc75cce9ad6c42826cdf52aba42d3103799142b7")).toBe("main@cc75cce9");
    expect(shortRevision("8ee2b1c0aa00112233445566778899aabbccddee")).toBe("8ee2b1c0");
    expect(shortRevision("prometheus-27.45.0")).toBe("prometheus-27.45.0");
  });
});
