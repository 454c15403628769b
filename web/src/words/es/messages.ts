import type { Words } from "../en";

export const messages: Words["messages"] = {};
