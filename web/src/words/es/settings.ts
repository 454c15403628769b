import type { Words } from "../en";

export const settings: Words["settings"] = {};
