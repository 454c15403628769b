/** Turns links to uploaded files into cards. This part runs during rendering, so that cards have
 * their height immediately; details follow from fileFacts. */

const LINKS = 'a[href^="/user_uploads/"]';
/** Media shown inline, and content of others. */
const ELSEWHERE = ".message_inline_image, .message_embed, blockquote";

export function makeFileCards(node: HTMLElement): void {
  const shown = new Set<string>();
  for (const one of node.querySelectorAll(".message_inline_image > a")) {
    shown.add(one.getAttribute("href") ?? "");
  }
  const cards: HTMLElement[] = [];
  /** The last card of each block. */
  const last = new Map<Element, Element>();
  const add = (block: Element, card: HTMLElement) => {
    (last.get(block) ?? block).after(card);
    last.set(block, card);
    cards.push(card);
  };
  for (const one of node.querySelectorAll<HTMLElement>(`audio[src], ${LINKS}`)) {
    const address = one.getAttribute("href") ?? one.getAttribute("src") ?? "";
    if (one.closest(ELSEWHERE)) continue;
    if (shown.has(address)) {
      // An image's caption.
      one.classList.toggle("caption", alone(one));
      continue;
    }
    shown.add(address);
    const block = blockOf(node, one);
    const card = document.createElement("div");
    card.className = "file";
    // Before the link moves into it, which may be the block itself.
    add(block, card);
    if (one instanceof HTMLAudioElement) card.append(linkTo(address, one.title), taken(one));
    else card.append(alone(one) ? taken(one) : one.cloneNode(true));
    card.classList.toggle("sound", one instanceof HTMLAudioElement);
  }
  for (const block of last.keys()) {
    if (!block.childNodes.length && block.localName !== "audio") block.remove();
  }
  if (cards.length) {
    void import("./fileCardDetails").then(
      ({ addFileDetails }) => addFileDetails(cards),
      () => {
        // If it fails, the card is just its link.
      },
    );
  }
}

/** The outermost block around the link, within the message or spoiler. */
function blockOf(node: HTMLElement, one: HTMLElement): Element {
  const within = one.closest(".spoiler-content") ?? node;
  let block: Element = one;
  while (block.parentElement && block.parentElement !== within) block = block.parentElement;
  return block;
}

const isBlank = (one: Node): boolean => !one.textContent?.trim();

/** The sibling, ignoring whitespace. */
function beside(one: Node, side: "previousSibling" | "nextSibling"): ChildNode | null {
  let found = one[side];
  while (found instanceof Text && isBlank(found)) found = found[side];
  return found;
}

/** Whether the link is on its own line. */
function alone(one: HTMLElement): boolean {
  const isEnd = (found: ChildNode | null) => !found || found.nodeName === "BR";
  return (
    one.parentElement?.nodeName === "P" &&
    isEnd(beside(one, "previousSibling")) &&
    isEnd(beside(one, "nextSibling"))
  );
}

/** Remove the link with its line from the paragraph. */
function taken(one: HTMLElement): HTMLElement {
  if (alone(one)) (beside(one, "previousSibling") ?? beside(one, "nextSibling"))?.remove();
  const around = one.parentElement;
  one.remove();
  if (around && !around.childElementCount && isBlank(around)) around.replaceChildren();
  return one;
}

function linkTo(address: string, name: string): HTMLAnchorElement {
  const link = document.createElement("a");
  Object.assign(link, { href: address, target: "_blank", rel: "noopener noreferrer" });
  link.textContent = name;
  return link;
}
