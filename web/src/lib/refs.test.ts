import { describe, expect, it } from "vitest";
import { fullName, parseRef, refText } from "./refs";

describe("names of apps in addresses", () => {
  it("keeps slashes in the names of clusters", () => {
    const ref = parseRef("management/fleet/eu-1/flux-kustomization/flux-system/shop");
    expect(ref).toMatchObject({ cluster: "management/fleet/eu-1", delivery: "flux-kustomization", namespace: "flux-system", name: "shop" });
    expect(ref && refText(ref)).toBe("management/fleet/eu-1/flux-kustomization/flux-system/shop");
  });
  it("writes an app without a namespace with a dash", () => {
    const ref = parseRef("eu-1/label/-/shop");
    expect(ref?.namespace).toBe("");
    expect(ref && refText(ref)).toBe("eu-1/label/-/shop");
  });
  it("names the home where another cluster declares the app", () => {
    const ref = parseRef("admin@ap-1/argo-application/argocd/front", "eu-hub");
    expect(ref && fullName(ref)).toBe("admin@ap-1/argo-application/argocd/front@eu-hub");
  });
  it("takes nothing that is too short", () => {
    for (const text of [undefined, "", "shop", "helm/a/b"]) expect(parseRef(text)).toBeUndefined();
  });
});
