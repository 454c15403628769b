/** Writing. */
export const compose = {
  placeholder: (where: string) => `Write to ${where}`,
  send: "Send",
};
