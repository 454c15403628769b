import type { Words } from "../en";

export const manage: Words["manage"] = {};
