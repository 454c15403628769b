import { common } from "./common";
import { compose } from "./compose";
import { manage } from "./manage";
import { media } from "./media";
import { messages } from "./messages";
import { settings } from "./settings";
import { shell } from "./shell";
import { views } from "./views";

export const en = { common, shell, views, messages, compose, media, settings, manage };

/** Words in any language: the same names, other texts. */
export type Words = typeof en;
