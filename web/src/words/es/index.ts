import type { Words } from "../en";
import { common } from "./common";
import { compose } from "./compose";
import { manage } from "./manage";
import { media } from "./media";
import { messages } from "./messages";
import { settings } from "./settings";
import { shell } from "./shell";
import { views } from "./views";

export const es: Words = { common, shell, views, messages, compose, media, settings, manage };
