/** Turns links to uploaded files into cards. This part runs during rendering, so that cards have
 * their height immediately; details follow from `fileCardDetails.ts`. */

const LINKS = 'a[href^="/user_uploads/"]';
/** Media shown inline, and content of others. */
const EXCLUDED = ".message_inline_image, .message_embed, blockquote";

export function makeFileCards(node: HTMLElement): void {
  const shown = new Set<string>();
  for (const link of node.querySelectorAll(".message_inline_image > a")) {
    shown.add(link.getAttribute("href") ?? "");
  }
  const cards: HTMLElement[] = [];
  /** The last card of each block. */
  const last = new Map<Element, Element>();
  const add = (block: Element, card: HTMLElement) => {
    (last.get(block) ?? block).after(card);
    last.set(block, card);
    cards.push(card);
  };
  for (const element of node.querySelectorAll<HTMLElement>(`audio[src], ${LINKS}`)) {
    const address = element.getAttribute("href") ?? element.getAttribute("src") ?? "";
    if (element.closest(EXCLUDED)) continue;
    if (shown.has(address)) {
      // An image's caption.
      element.classList.toggle("caption", alone(element));
      continue;
    }
    shown.add(address);
    const block = blockOf(node, element);
    const card = document.createElement("div");
    card.className = "file";
    // Before the link moves into it, which may be the block itself.
    add(block, card);
    if (element instanceof HTMLAudioElement)
      card.append(linkTo(address, element.title), taken(element));
    else card.append(alone(element) ? taken(element) : element.cloneNode(true));
    card.classList.toggle("sound", element instanceof HTMLAudioElement);
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
function blockOf(node: HTMLElement, element: HTMLElement): Element {
  const within = element.closest(".spoiler-content") ?? node;
  let block: Element = element;
  while (block.parentElement && block.parentElement !== within) block = block.parentElement;
  return block;
}

const isBlank = (node: Node): boolean => !node.textContent?.trim();

/** The sibling, ignoring whitespace. */
function sibling(node: Node, side: "previousSibling" | "nextSibling"): ChildNode | null {
  let sibling = node[side];
  while (sibling instanceof Text && isBlank(sibling)) sibling = sibling[side];
  return sibling;
}

/** Whether the link is on its own line. */
function alone(element: HTMLElement): boolean {
  const isEnd = (node: ChildNode | null) => !node || node.nodeName === "BR";
  return (
    element.parentElement?.nodeName === "P" &&
    isEnd(sibling(element, "previousSibling")) &&
    isEnd(sibling(element, "nextSibling"))
  );
}

/** Remove the link with its line from the paragraph. */
function taken(element: HTMLElement): HTMLElement {
  if (alone(element))
    (sibling(element, "previousSibling") ?? sibling(element, "nextSibling"))?.remove();
  const around = element.parentElement;
  element.remove();
  if (around && !around.childElementCount && isBlank(around)) around.replaceChildren();
  return element;
}

function linkTo(address: string, name: string): HTMLAnchorElement {
  const link = document.createElement("a");
  Object.assign(link, { href: address, target: "_blank", rel: "noopener noreferrer" });
  link.textContent = name;
  return link;
}
