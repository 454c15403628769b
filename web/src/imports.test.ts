import { expect, it } from "vitest";

const sources = import.meta.glob<string>(["./**/*.{ts,svelte}", "!./**/*.test.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});

/** The modules that each one imports at its top, types included. */
function imports(path: string): string[] {
  const matches = sources[path]!.matchAll(/^\s*(?:import|export)\b[^;"]*"(\.[^"]+)";$/gm);
  return [...matches].flatMap(([, target]) => {
    const { pathname } = new URL(target!, `file:///${path.slice(2)}`);
    const names = ["", ".ts", "/index.ts"].map((ending) => `.${pathname}${ending}`);
    return names.find((name) => name in sources) ?? [];
  });
}

it("no modules import each other in a circle", () => {
  const done = new Set<string>();
  const walk = (path: string, trail: readonly string[]): string[] => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return [];
    const circle = imports(path)
      .map((next) => walk(next, [...trail, path]))
      .find((cycle) => cycle.length);
    done.add(path);
    return circle ?? [];
  };

  expect(imports("./Root.svelte")).toContain("./live/store.svelte.ts");
  expect(Object.keys(sources).flatMap((path) => walk(path, []))).toEqual([]);
});
