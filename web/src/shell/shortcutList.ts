/** The list of shortcuts, as the help shows it. */

/** Names in `words.keys`, by group, for the card of shortcuts. */
export const SHORTCUT_LIST = [
  {
    group: "navigation",
    keys: [
      ["/", "search"],
      ["Control+k", "jump"],
      ["i", "inbox"],
      ["t", "recent"],
      ["v", "feed"],
      ["*", "starred"],
      ["d", "drafts"],
      ["l", "later"],
      ["n", "nextTopic"],
      ["p", "nextDirect"],
      ["a", "previousChannel"],
      ["D", "nextChannel"],
      ["q", "filterChannels"],
      ["w", "filterPeople"],
      ["Escape", "home"],
    ],
  },
  {
    group: "reading",
    keys: [
      ["j", "next"],
      ["k", "previous"],
      ["J", "pageDown", " "],
      ["K", "pageUp"],
      ["End", "newest"],
      ["Home", "oldest"],
      ["s", "toTopic"],
      ["S", "toChannel"],
      ["P", "allDirects"],
      ["T", "topicList"],
      ["u", "card"],
      ["m", "markRowRead"],
      ["M", "mute"],
      ["F", "follow"],
      ["x", "selectRow"],
      ["e", "done"],
    ],
  },
  {
    group: "writing",
    keys: [
      ["c", "write"],
      ["x", "writeDirect"],
      ["r", "reply"],
      [">", "quote"],
      ["Enter", "compose"],
      ["Control+Enter", "send"],
      ["Alt+m", "formatted"],
      ["ArrowLeft", "editLast"],
    ],
  },
  {
    group: "messages",
    keys: [
      ["e", "edit"],
      ["m", "move"],
      ["Control+s", "star"],
      ["f", "followUp"],
      ["b", "remind"],
      [":", "react"],
      ["+", "thumbsUp"],
      ["U", "markUnread"],
      ["L", "copyLink"],
      ["H", "history"],
      ["V", "receipts"],
    ],
  },
  {
    group: "general",
    keys: [
      ["?", "help"],
      ["[", "left"],
      ["]", "right"],
      ["g", "account"],
    ],
  },
] as const;

/** Key labels as printed on keyboards. */
export function keyLabels(key: string): string[] {
  const isApple = /Mac|iPhone|iPad/.test(navigator.platform);
  const caps: Record<string, string> = {
    " ": "Space",
    ArrowLeft: "←",
    ArrowUp: "↑",
    ArrowDown: "↓",
    Escape: "Esc",
    Control: isApple ? "⌘" : "Ctrl",
    ...(isApple && { Alt: "⌥" }),
  };
  const keys = key.length > 1 ? key.split("+") : [key];
  return keys.flatMap((part, at) => {
    const cap = caps[part] ?? part;
    if (/^\p{Lu}$/u.test(cap)) return ["Shift", cap];
    return at && /^\p{Ll}$/u.test(cap) ? [cap.toUpperCase()] : [cap];
  });
}
