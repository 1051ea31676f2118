import { defineConfig } from "vite";
import solid from "vite-plugin-solid";

export default defineConfig({
  plugins: [solid()],
  build: {
    outDir: "dist",
    // Modern only: `light-dark()` and `oklch()` must stay as written, since the theme switch relies on them.
    target: "es2023",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    // The content security policy forbids `data:`.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
} as Parameters<typeof defineConfig>[0]);
