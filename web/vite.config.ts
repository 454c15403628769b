import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { brotliCompressSync } from "node:zlib";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vitest/config";
import { fixedIcons } from "./icons.ts";
import { compileWords } from "./words.ts";

const PACKAGE = "../src/tertulia/web";
const BASE = "/app/";
const WORKER = "worker.js";

/** Files that the server uses: KaTeX renders formulas, and its own pages use the fonts. */
const FOR_THE_SERVER = {
  "katex/dist/katex.min.js": "katex.min.js",
  "@fontsource-variable/figtree/files/figtree-latin-wght-normal.woff2": "assets/figtree-v1.woff2",
  "@fontsource-variable/fraunces/files/fraunces-latin-wght-normal.woff2":
    "assets/fraunces-v1.woff2",
};

/** Modules of the service worker, which is a single file. */
const isWorker = (id: string) => /\/src\/worker\/(worker|pushes)\.ts$/.test(id);

/** Modules that show the first messages before the client starts, and that the client shares. */
const isEarly = (id: string) =>
  /\/src\/(opening\/|wire\/early|data\/(content|emojiCharacters|fragments|rows|times)\.ts)/.test(
    id,
  );

/** Modules that the rest of the client depends on, loaded while the first messages are requested. */
const isBase = (id: string) =>
  /\/node_modules\/(svelte|esm-env|clsx)\/|\/src\/(data|wire|words)\//.test(id);

/** Background modules that start right after the first view: one file instead of several. */
const isBackground = (id: string) =>
  /\/src\/(live\/(notifications|push|timeZone)|shell\/(background|contextMenus|prefetch|prefetchConversations))\.ts$/.test(
    id,
  );
/**
 * Modules shared by views that are loaded on demand: one file instead of thirty, because each
 * request takes a phone some milliseconds, however small the file is.
 */
const isShared = (id: string) =>
  !isWorker(id) && /\/src\/(compose|data|live|messages|shell|ui)\/|\/@lucide\//.test(id);

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

/** Compiles the texts, and compiles them again when one changes. */
function compiledWords(): Plugin {
  return {
    name: "compiled-words",
    config: compileWords,
    configureServer({ watcher }) {
      watcher.add("words").on("change", (file) => file.endsWith(".json") && compileWords());
    },
  };
}

const OPENING = "src/opening/opening.ts";
/** Styles of the page before the client has started, in order. */
const OPENING_STYLES = [
  "../src/tertulia/wire/assets/tokens.css",
  "src/design/base.css",
  "src/design/content.css",
  "src/design/opening.css",
].map((name) => resolve(name));

/**
 * Loads what shows the page's frame and the first messages (a few styles and a small script) before
 * the client itself.
 */
function openingFirst(): Plugin {
  const source = OPENING_STYLES.map((name) => readFileSync(name, "utf8"))
    .join("")
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s+/g, " ");
  const mark = createHash("sha256").update(source).digest("hex").slice(0, 8);
  const fileName = `assets/opening-${mark}.css`;
  return {
    name: "opening-first",
    apply: "build",
    enforce: "pre",
    buildStart() {
      this.emitFile({ type: "asset", fileName, source });
    },
    load(id) {
      // The opening's style sheet already contains them.
      return OPENING_STYLES.includes(id) ? "" : null;
    },
    transformIndexHtml: {
      order: "post",
      handler(html, { bundle = {} }) {
        const late: string[] = [];
        const rest = html.replace(
          /\s*<(?:script type="module"[^>]*><\/script>|link rel="(?:stylesheet|modulepreload)"[^>]*>)/g,
          (tag) => {
            late.push(tag.trim());
            return "";
          },
        );
        const chunks = Object.values(bundle).filter((output) => output.type === "chunk");
        const entry = chunks.find(({ facadeModuleId }) => facadeModuleId === resolve(OPENING));
        if (!entry) throw new Error("The build has no opening script.");
        const isPreload = (tag: string) => tag.includes('rel="modulepreload"');
        const opening = [
          `<script type="module" async crossorigin src="${BASE}${entry.fileName}"></script>`,
          ...late.filter((tag) => isPreload(tag) && !tag.includes(entry.fileName)),
          `<template id="client">${late.filter((tag) => !isPreload(tag)).join("")}</template>`,
        ];
        return rest
          .replace("</head>", `  <link rel="stylesheet" href="${BASE}${fileName}">\n  </head>`)
          .replace("</body>", `  ${opening.join("\n    ")}\n  </body>`);
      },
    },
  };
}

/** `openingFirst` for `npm run dev`, where styles are part of the scripts. */
function openingInDevelopment(): Plugin {
  return {
    name: "opening-in-development",
    apply: "serve",
    transformIndexHtml: () => [
      { tag: "script", attrs: { type: "module", src: `/${OPENING}` }, injectTo: "body-prepend" },
    ],
  };
}

/**
 * Tells the service worker which files to cache: all scripts and styles, and the Latin fonts. Large
 * files that few people need are cached on first use.
 */
function filesForTheWorker(): Plugin {
  const isCached = (name: string) =>
    /\.(js|css)$|-latin-wght-normal.*\.woff2$/.test(name) &&
    !name.startsWith("assets/FormattedField-");
  return {
    name: "files-for-the-worker",
    apply: "build",
    enforce: "post",
    generateBundle(_, bundle) {
      const worker = bundle[WORKER];
      if (worker?.type !== "chunk") throw new Error("The build has no service worker.");
      const names = Object.keys(bundle).filter((name) => name.startsWith("assets/"));
      const files = names.filter(isCached).sort();
      const mark = createHash("sha256")
        .update(worker.code + files.join())
        .digest("hex");
      worker.code = worker.code
        .replaceAll("__FILES__", JSON.stringify(files.map((name) => BASE + name)))
        .replaceAll("__MARK__", JSON.stringify(mark.slice(0, 12)));
    },
  };
}

/** Smaller files aren't compressed, in bytes. The server does the same (`built_files.py`). */
const MIN_COMPRESSED_SIZE = 1024;

/** Writes a Brotli version of each script and style, a tenth smaller than gzip. */
function compressedFiles(): Plugin {
  return {
    name: "compressed-files",
    apply: "build",
    enforce: "post",
    writeBundle(_, bundle) {
      for (const name of Object.keys(bundle)) {
        if (!/^assets\/.*\.(js|css)$/.test(name)) continue;
        const path = `${PACKAGE}/${name}`;
        const content = readFileSync(path);
        if (content.length > MIN_COMPRESSED_SIZE)
          writeFileSync(`${path}.br`, brotliCompressSync(content));
      }
    },
  };
}

// `npm run dev` uses a running server: TERTULIA is its URL, and TERTULIA_AS an "email:API key" to
// sign in with.
const server = process.env["TERTULIA"] ?? "http://127.0.0.1:9991";
const as = process.env["TERTULIA_AS"];
const proxied = {
  target: server,
  headers: as ? { Authorization: `Basic ${Buffer.from(as).toString("base64")}` } : {},
};

export default defineConfig({
  plugins: [
    compiledWords(),
    fixedIcons(),
    svelte(),
    openingFirst(),
    openingInDevelopment(),
    filesForTheServer(),
    filesForTheWorker(),
    compressedFiles(),
  ],
  base: BASE,
  build: {
    outDir: PACKAGE,
    emptyOutDir: true,
    target: "es2022",
    // The oldest browsers that support tokens.css, so that no color is rewritten for older ones.
    cssTarget: ["chrome123", "firefox128", "safari18"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { client: "index.html", opening: OPENING, worker: "src/worker/worker.ts" },
      output: {
        // The worker's URL must not change.
        entryFileNames: ({ name }) => (name === "worker" ? WORKER : "assets/[name]-[hash].js"),
        // One file for the first view: thirty small ones take five round trips on a slow network.
        codeSplitting: {
          groups: [
            { name: "early", test: isEarly, priority: 4 },
            {
              name: "base",
              tags: ["$initial"],
              test: (id) => !isWorker(id) && isBase(id),
              priority: 3,
            },
            { name: "first", tags: ["$initial"], test: (id) => !isWorker(id), priority: 2 },
            { name: "soon", test: isBackground, priority: 1.5 },
            { name: "parts", minShareCount: 2, test: isShared, priority: 1 },
          ],
        },
      },
    },
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
        "/manifest.webmanifest",
        "/external_content",
        "/thumbnail",
      ].map((path) => [path, proxied]),
    ),
  },
  test: {
    include: ["src/**/*.test.ts"],
    // The tested functions keep no state, and loading all modules again for each file took three
    // quarters of the time.
    isolate: false,
    pool: "threads",
    // Generous, for busy machines.
    testTimeout: 60_000,
  },
});
