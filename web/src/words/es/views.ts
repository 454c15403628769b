import type { Words } from "../en";

export const views: Words["views"] = {};
