/** Converts copied HTML to Markdown. Returns null if plain text is as good. */

import { fenceFor } from "./textEdits";

/** The parts of a DOM node that are read. */
export interface Node {
  nodeType: number;
  nodeName: string;
  textContent: string | null;
  childNodes: ArrayLike<Node>;
  getAttribute?(name: string): string | null;
}

const TEXT = 3;
const ELEMENT = 1;
const SKIPPED = new Set(["SCRIPT", "STYLE", "TITLE", "META", "LINK", "HEAD", "TEMPLATE"]);
const BLOCKS = new Set(
  "P DIV SECTION ARTICLE HEADER FOOTER MAIN H1 H2 H3 H4 H5 H6 FIGURE DL DT DD ADDRESS".split(" "),
);

export function markdownOf(root: Node): string | null {
  const result = { rich: false };
  const text = block(root, result)
    .replace(/[ \t]+\n/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
  return result.rich && text ? text : null;
}

type Found = { rich: boolean };

function children(node: Node): Node[] {
  return Array.from(node.childNodes);
}

function block(node: Node, result: Found): string {
  let output = "";
  for (const child of children(node)) {
    const piece = textOfNode(child, result);
    if (isBlock(child) && piece.trim()) {
      output = `${output.trimEnd()}${output.trim() ? "\n\n" : ""}${piece.replace(/^\n+|\s+$/g, "")}\n\n`;
    } else {
      // Spaces at the beginning of inline elements separate words.
      const isLineStart = output === "" ? isBlock(node) : output.endsWith("\n");
      output += isLineStart ? piece.replace(/^ +/, "") : piece;
    }
  }
  return output;
}

function isBlock(node: Node): boolean {
  return (
    node.nodeType === ELEMENT &&
    (BLOCKS.has(node.nodeName) ||
      ["UL", "OL", "PRE", "BLOCKQUOTE", "TABLE", "HR"].includes(node.nodeName))
  );
}

function textOfNode(node: Node, result: Found): string {
  if (node.nodeType === TEXT) return (node.textContent ?? "").replace(/\s+/g, " ");
  if (node.nodeType !== ELEMENT || SKIPPED.has(node.nodeName)) return "";
  const name = node.nodeName;
  const inside = () => block(node, result);
  const rich = (text: string) => {
    if (text.trim()) result.rich = true;
    return text;
  };
  switch (name) {
    case "BR":
      return "\n";
    case "B":
    case "STRONG":
      return isNormal(node) ? inside() : rich(around(inside(), "**"));
    case "I":
    case "EM":
      return rich(around(inside(), "*"));
    case "S":
    case "DEL":
    case "STRIKE":
      return rich(around(inside(), "~~"));
    case "CODE":
    case "TT":
      return rich(code(node.textContent ?? ""));
    case "A":
      return rich(link(node, inside()));
    case "PRE":
      return rich(fenced(node.textContent ?? ""));
    case "BLOCKQUOTE":
      return rich(
        inside()
          .trim()
          .split("\n")
          .map((line) => `> ${line}`.trimEnd())
          .join("\n"),
      );
    case "UL":
    case "OL":
      return rich(list(node, result));
    case "TABLE":
      return rich(table(node, result));
    case "H1":
    case "H2":
    case "H3":
    case "H4":
    case "H5":
    case "H6":
      return rich(around(inside().trim().replace(/\*\*/g, ""), "**"));
    case "HR":
      return "---";
    default:
      return inside();
  }
}

/** Some pages wrap everything they copy in a <b> that isn't bold. */
function isNormal(node: Node): boolean {
  return /font-weight:\s*(normal|400)/.test(node.getAttribute?.("style") ?? "");
}

function around(text: string, sign: string): string {
  const inner = text.trim();
  if (!inner || inner.includes("\n\n")) return text;
  const [before = "", after = ""] = [/^\s*/.exec(text)?.[0], /\s*$/.exec(text)?.[0]];
  return before + sign + inner + sign + after;
}

/** Use more backticks than the text contains in a row. */
function code(text: string): string {
  const runs = text.match(/`+/g);
  if (!runs) return around(text, "`");
  const sign = "`".repeat(Math.max(...runs.map((run) => run.length)) + 1);
  return `${sign} ${text.trim()} ${sign}`;
}

function fenced(text: string): string {
  const fence = fenceFor(text);
  return `${fence}\n${text.replace(/\n$/, "")}\n${fence}`;
}

function link(node: Node, text: string): string {
  const address = node.getAttribute?.("href") ?? "";
  const label = text.trim();
  if (!/^(https?:|mailto:)/i.test(address)) return text;
  if (!label || label === address) return address;
  return `[${label.replace(/[[\]]/g, "").replace(/\n+/g, " ")}](${address})`;
}

function list(node: Node, result: Found): string {
  let at = Number(node.getAttribute?.("start") ?? 1) || 1;
  const lines: string[] = [];
  for (const child of children(node)) {
    if (child.nodeName !== "LI" && child.nodeName !== "UL" && child.nodeName !== "OL") continue;
    const isNested = child.nodeName !== "LI";
    const text = (isNested ? list(child, result) : block(child, result))
      .trim()
      .replace(/\n{2,}/g, "\n");
    const sign = node.nodeName === "OL" ? `${at}.` : "*";
    if (isNested) lines.push(text.replace(/^/gm, "  "));
    else {
      lines.push(`${sign} ${text.replace(/\n/g, "\n  ")}`);
      at += 1;
    }
  }
  return lines.join("\n");
}

function table(node: Node, result: Found): string {
  const rows: Node[] = [];
  const gather = (from: Node) => {
    for (const child of children(from)) {
      if (child.nodeName === "TR") rows.push(child);
      else if (child.nodeType === ELEMENT) gather(child);
    }
  };
  gather(node);
  const cells = rows
    .map((row) =>
      children(row)
        .filter((cell) => cell.nodeName === "TD" || cell.nodeName === "TH")
        .map((cell) => block(cell, result).trim().replace(/\s+/g, " ").replace(/\|/g, "\\|")),
    )
    .filter((row) => row.length);
  const width = Math.max(0, ...cells.map((row) => row.length));
  // A table with one row or column is layout.
  if (width < 2 || cells.length < 2) return cells.flat().join("\n");
  const line = (row: string[]) =>
    `| ${Array.from({ length: width }, (_, at) => row[at] ?? "").join(" | ")} |`;
  const [head = [], ...rest] = cells;
  return [line(head), `|${" --- |".repeat(width)}`, ...rest.map(line)].join("\n");
}
