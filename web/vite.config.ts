import { copyFileSync, mkdirSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vitest/config";

const PACKAGE = "../src/tertulia/web";

/** Puts KaTeX beside the client: the server renders formulas with it. */
function katexForTheServer(): Plugin {
  return {
    name: "katex-for-the-server",
    apply: "build",
    writeBundle() {
      mkdirSync(PACKAGE, { recursive: true });
      copyFileSync("node_modules/katex/dist/katex.min.js", `${PACKAGE}/katex.min.js`);
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
  plugins: [svelte(), katexForTheServer()],
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
