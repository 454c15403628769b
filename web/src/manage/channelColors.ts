/** Channel colors that are distinguishable in light and dark themes. */
export const CHANNEL_COLORS = [
  ["#c2726a", "brick"],
  ["#e4523d", "red"],
  ["#ee7e4a", "orange"],
  ["#e7a23b", "amber"],
  ["#b5a13a", "mustard"],
  ["#94a849", "olive"],
  ["#53a063", "green"],
  ["#4aa58f", "teal"],
  ["#4ba3b5", "cyan"],
  ["#4f8de4", "blue"],
  ["#7f87e8", "indigo"],
  ["#9987e1", "violet"],
  ["#bd86e5", "purple"],
  ["#d977a4", "pink"],
  ["#a47462", "brown"],
  ["#918a80", "grey"],
] as const;
