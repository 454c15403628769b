import { copyFileSync, mkdirSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vitest/config";

const PACKAGE = "../src/tertulia/web";

/** What the server itself uses of this: KaTeX renders formulas there, and its pages have our fonts. */
const FOR_THE_SERVER = {
  "katex/dist/katex.min.js": "katex.min.js",
  "@fontsource-variable/figtree/files/figtree-latin-wght-normal.woff2": "assets/figtree-v1.woff2",
  "@fontsource-variable/fraunces/files/fraunces-latin-wght-normal.woff2":
    "assets/fraunces-v1.woff2",
};

function filesForTheServer(): Plugin {
  return {
    name: "files-for-the-server",
    apply: "build",
    writeBundle() {
      mkdirSync(`${PACKAGE}/assets`, { recursive: true });
      for (const [from, to] of Object.entries(FOR_THE_SERVER)) {
        copyFileSync(`node_modules/${from}`, `${PACKAGE}/${to}`);
      }
    },
  };
}

// `npm run dev` shows the client against a running server: TERTULIA is its address, and
// TERTULIA_AS an "address:API key" to be signed in as.
const server = process.env["TERTULIA"] ?? "http://127.0.0.1:9991";
const as = process.env["TERTULIA_AS"];
const passed = {
  target: server,
  headers: as ? { Authorization: `Basic ${Buffer.from(as).toString("base64")}` } : {},
};

export default defineConfig({
  plugins: [svelte(), filesForTheServer()],
  base: "/app/",
  build: {
    outDir: PACKAGE,
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    fs: { allow: [".."] },
    proxy: Object.fromEntries(
      [
        "/api",
        "/user_uploads",
        "/user_avatars",
        "/avatar",
        "/static",
        "/external_content",
        "/thumbnail",
      ].map((path) => [path, passed]),
    ),
  },
  test: { include: ["src/**/*.test.ts"] },
});
