/** Compiles Lucide's icons to fixed SVG. */

import type { Plugin } from "vite";

const ICON = /\/@lucide\/svelte\/dist\/icons\/([\w-]+)\.svelte$/;
const DATA = /^const iconData = (\{.*\});$/m;

/** The properties that icons support. Without a label, they are hidden from assistive technology. */
export const PROPERTIES = {
  size: "size = 24",
  fill: 'fill = "none"',
  color: 'color = "currentColor"',
  strokeWidth: "strokeWidth = 2",
  class: "class: own",
  "aria-label": '"aria-label": label',
};

export type Node = [tag: string, attributes: Record<string, string>];

/** The package's own components build each SVG from data, attribute by attribute, which takes half of
 * the time to render a list's rows. */
export function fixedIcons(): Plugin {
  return {
    name: "fixed-icons",
    enforce: "pre",
    transform(code, id) {
      const name = ICON.exec(id)?.[1];
      if (!name) return null;
      const data = DATA.exec(code)?.[1];
      if (!data) throw new Error(`The icon ${name} has no data.`);
      return component(name, (JSON.parse(data) as { node: Node[] }).node);
    },
  };
}

/** One path instead of several shapes, since browsers style and lay out each element. Shapes with an
 * own look stay. */
export function merged(nodes: readonly Node[]): Node[] {
  const paths: string[] = [];
  const rest: Node[] = [];
  for (const node of nodes) {
    const path = pathOf(node);
    if (path === null) rest.push(node);
    else paths.push(path);
  }
  return paths.length ? [["path", { d: paths.join("") }], ...rest] : rest;
}

const NUMBER = String.raw`[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?`;
const RELATIVE_START = new RegExp(String.raw`^m\s*(${NUMBER})[\s,]*(${NUMBER})\s*,?(.*)$`, "s");

/** The outline of a shape, which begins at an absolute position; null if the shape has anything
 * else. */
function pathOf([tag, attributes]: Node): string | null {
  const has = (...names: string[]) => Object.keys(attributes).every((name) => names.includes(name));
  const number = (name: string) => Number(attributes[name] ?? 0);
  if (tag === "path" && has("d")) {
    const start = RELATIVE_START.exec(attributes["d"] ?? "");
    if (!start) return attributes["d"] ?? "";
    const [, x, y, more = ""] = start;
    // Further pairs after a relative move are relative lines.
    return `M${x} ${y}${/^[-+.\d]/.test(more) ? "l" : ""}${more}`;
  }
  if (tag === "line" && has("x1", "y1", "x2", "y2")) {
    return `M${number("x1")} ${number("y1")}L${number("x2")} ${number("y2")}`;
  }
  if ((tag === "polyline" || tag === "polygon") && has("points")) {
    return `M${attributes["points"]}${tag === "polygon" ? "z" : ""}`;
  }
  if (tag === "circle" && has("cx", "cy", "r")) {
    return ellipse(number("cx"), number("cy"), number("r"), number("r"));
  }
  if (tag === "ellipse" && has("cx", "cy", "rx", "ry")) {
    return ellipse(number("cx"), number("cy"), number("rx"), number("ry"));
  }
  if (tag === "rect" && has("x", "y", "width", "height", "rx", "ry")) {
    const [x, y, width, height] = (["x", "y", "width", "height"] as const).map(number) as Four;
    const across = Math.min(Number(attributes["rx"] ?? attributes["ry"] ?? 0), width / 2);
    const down = Math.min(Number(attributes["ry"] ?? attributes["rx"] ?? 0), height / 2);
    const corner = (toX: number, toY: number) =>
      across && down ? `a${across} ${down} 0 0 1 ${round(toX)} ${round(toY)}` : "";
    return [
      `M${round(x + across)} ${y}h${round(width - 2 * across)}`,
      `${corner(across, down)}v${round(height - 2 * down)}`,
      `${corner(-across, down)}h${round(2 * across - width)}`,
      `${corner(-across, -down)}v${round(2 * down - height)}`,
      `${corner(across, -down)}z`,
    ].join("");
  }
  return null;
}

type Four = [number, number, number, number];

function ellipse(x: number, y: number, across: number, down: number): string {
  const half = (to: number) => `a${across} ${down} 0 0 1 ${round(to)} 0`;
  return `M${round(x - across)} ${y}${half(2 * across)}${half(-2 * across)}z`;
}

/** Without the noise of binary fractions. */
function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function component(name: string, nodes: Node[]): string {
  const shapes = merged(nodes).map(([tag, attributes]) => {
    const pairs = Object.entries(attributes).map(([key, value]) => `${key}="${value}"`);
    return `<${tag} ${pairs.join(" ")} />`;
  });
  return `<script>
  let { ${Object.values(PROPERTIES).join(", ")} } = $props();
</script>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" stroke-linecap="round" stroke-linejoin="round"
  width={size} height={size} {fill} stroke={color} stroke-width={strokeWidth}
  class={["lucide lucide-${name}", own]} aria-label={label} aria-hidden={label ? undefined : "true"}>${shapes.join("")}</svg>`;
}
