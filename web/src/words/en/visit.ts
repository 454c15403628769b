/** Reading without an account. */
export const visit = {
  signIn: "Sign in",
  join: "Create an account",
  channels: "Open to everybody",
  reading: "You are reading without an account.",
  takePart: "Whoever has an account can write here, react, and hear of what is new.",
  needsAccount: "This needs an account",
  closed: "This is not open to everybody",
  closedText: "It may be for members, or the link may be old or mistyped. Sign in to look.",
  ofOneself: (operator: string) => `“${operator}:” looks for what is one’s own: sign in first.`,
  none: "No channel is open to everybody at the moment.",
};
