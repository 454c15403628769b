import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync } from "node:zlib";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vitest/config";
import { compileWords } from "./words.ts";

const PACKAGE = "../src/tertulia/web";
const BASE = "/app/";
const WORKER = "worker.js";

/** What the server itself uses of this: KaTeX renders formulas there, and its pages have our fonts. */
const FOR_THE_SERVER = {
  "katex/dist/katex.min.js": "katex.min.js",
  "@fontsource-variable/figtree/files/figtree-latin-wght-normal.woff2": "assets/figtree-v1.woff2",
  "@fontsource-variable/fraunces/files/fraunces-latin-wght-normal.woff2":
    "assets/fraunces-v1.woff2",
};

/** The service worker is a file by itself. */
const isOfWorker = (id: string) => /\/src\/worker\/(worker|pushes)\.ts$/.test(id);

/** What begins as soon as the first view is there, and is not seen: one file in place of eight. */
const isSoon = (id: string) =>
  /\/src\/(live\/(notifications|push|timeZone)|shell\/contextMenus)\.ts$/.test(id);
/**
 * What two or more of the views that are loaded on use stand on: one file in place of thirty. Each
 * that is asked for takes a phone some milliseconds, however small it is.
 */
const isPart = (id: string) =>
  !isOfWorker(id) && /\/src\/(compose|data|live|messages|shell|ui)\/|\/@lucide\//.test(id);

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

/** Compiles the texts, and again when one changes. */
function compiledWords(): Plugin {
  return {
    name: "compiled-words",
    config: compileWords,
    configureServer({ watcher }) {
      watcher.add("words").on("change", (file) => file.endsWith(".json") && compileWords());
    },
  };
}

/**
 * The frame of the page is seen as soon as its few styles are there: these come first and alone, and
 * what the client needs is asked for behind what is to be seen.
 */
function openingFirst(): Plugin {
  const from = ["../src/tertulia/wire/assets/tokens.css", "src/design/opening.css"];
  const source = from
    .map((name) => readFileSync(name, "utf8"))
    .join("")
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s+/g, " ");
  const mark = createHash("sha256").update(source).digest("hex").slice(0, 8);
  const fileName = `assets/opening-${mark}.css`;
  return {
    name: "opening-first",
    apply: "build",
    buildStart() {
      this.emitFile({ type: "asset", fileName, source });
    },
    transformIndexHtml: {
      order: "post",
      handler(html) {
        const late: string[] = [];
        const rest = html.replace(
          /\s*<(?:script type="module"[^>]*><\/script>|link rel="(?:stylesheet|modulepreload)"[^>]*>)/g,
          (tag) => {
            late.push(tag.trim());
            return "";
          },
        );
        return rest
          .replace("</head>", `  <link rel="stylesheet" href="${BASE}${fileName}">\n  </head>`)
          .replace("</body>", `  ${late.join("\n    ")}\n  </body>`);
      },
    },
  };
}

/**
 * Tells the service worker which files to keep: all scripts and styles, and the Latin letters. What
 * few want is large, and is kept once it was asked for.
 */
function filesForTheWorker(): Plugin {
  const isKept = (name: string) =>
    /\.(js|css)$|-latin-wght-normal.*\.woff2$/.test(name) &&
    !name.startsWith("assets/FormattedField-");
  return {
    name: "files-for-the-worker",
    apply: "build",
    enforce: "post",
    generateBundle(_, bundle) {
      const worker = bundle[WORKER];
      if (worker?.type !== "chunk") throw new Error("There is no service worker.");
      const names = Object.keys(bundle).filter((name) => name.startsWith("assets/"));
      const files = names.filter(isKept).sort();
      const mark = createHash("sha256")
        .update(worker.code + files.join())
        .digest("hex");
      worker.code = worker.code
        .replaceAll("__FILES__", JSON.stringify(files.map((name) => BASE + name)))
        .replaceAll("__MARK__", JSON.stringify(mark.slice(0, 12)));
    },
  };
}

/** Files below this are sent as they are, as the server does (`built_files.py`), in bytes. */
const WORTH_PACKING = 1024;

/** Beside each script and style the same packed by Brotli, for browsers that take it: a tenth less. */
function packedBeside(): Plugin {
  return {
    name: "packed-beside",
    apply: "build",
    enforce: "post",
    writeBundle(_, bundle) {
      for (const name of Object.keys(bundle)) {
        if (!/^assets\/.*\.(js|css)$/.test(name)) continue;
        const path = `${PACKAGE}/${name}`;
        const content = readFileSync(path);
        if (content.length > WORTH_PACKING)
          writeFileSync(`${path}.br`, brotliCompressSync(content));
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
  plugins: [
    compiledWords(),
    svelte(),
    openingFirst(),
    filesForTheServer(),
    filesForTheWorker(),
    packedBeside(),
  ],
  base: BASE,
  build: {
    outDir: PACKAGE,
    emptyOutDir: true,
    target: "es2022",
    // As tokens.css needs them: no colour is rewritten for browsers that cannot show it anyway.
    cssTarget: ["chrome123", "firefox128", "safari18"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { client: "index.html", worker: "src/worker/worker.ts" },
      output: {
        // The worker is always at the same address.
        entryFileNames: ({ name }) => (name === "worker" ? WORKER : "assets/[name]-[hash].js"),
        // What the first view needs is one file: thirty small ones are five turns of a slow network.
        codeSplitting: {
          groups: [
            { name: "first", tags: ["$initial"], test: (id) => !isOfWorker(id), priority: 3 },
            { name: "soon", test: isSoon, priority: 2 },
            { name: "parts", minShareCount: 2, test: isPart, priority: 1 },
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
      ].map((path) => [path, passed]),
    ),
  },
  test: {
    include: ["src/**/*.test.ts"],
    // What is tested are functions that keep nothing: each file loading all of it anew took three
    // quarters of the time.
    isolate: false,
    pool: "threads",
    // A busy machine takes its time.
    testTimeout: 60_000,
  },
});
