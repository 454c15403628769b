import type { Language } from "../en";
import { common } from "./common";
import { compose } from "./compose";
import { media } from "./media";
import { messages } from "./messages";
import { shell } from "./shell";
import { views } from "./views";

export const first: Language["first"] = { common, shell, views, messages, compose, media };

export const later: Language["later"] = {
  settings: async () => (await import("./settings")).settings,
  manage: async () => (await import("./manage")).manage,
  visit: async () => (await import("./visit")).visit,
};
