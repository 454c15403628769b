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

type Node = [tag: string, attributes: Record<string, string>];

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

function component(name: string, nodes: Node[]): string {
  const shapes = nodes.map(([tag, attributes]) => {
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
