import type { Language } from "../en";
import { common } from "./common";
import { compose } from "./compose";
import { messages } from "./messages";
import { shell } from "./shell";
import { views } from "./views";

export const first: Language["first"] = { common, shell, views, messages, compose };

export const later: Language["later"] = {
  settings: async () => (await import("./settings")).settings,
  manage: async () => (await import("./manage")).manage,
};
