import type { ServerEvent } from "../wire/events";
import type { Data } from "./data";
import { DataBuilder, type Fold } from "./fold/builder";
import { CHANNEL_FOLDS } from "./fold/channels";
import { MESSAGE_FOLDS } from "./fold/messages";
import { ORGANIZATION_FOLDS } from "./fold/organization";
import { OWN_FOLDS } from "./fold/own";
import { PEOPLE_FOLDS } from "./fold/people";

/** By `type` or `type/op`. */
const FOLDS: Readonly<Record<string, Fold>> = {
  ...PEOPLE_FOLDS,
  ...ORGANIZATION_FOLDS,
  ...CHANNEL_FOLDS,
  ...OWN_FOLDS,
  ...MESSAGE_FOLDS,
};

export function fold(data: Data, events: readonly ServerEvent[]): Data {
  const next = new DataBuilder(data);
  for (const event of events) {
    const name = event.op === undefined ? event.type : `${event.type}/${event.op}`;
    (FOLDS[name] ?? FOLDS[event.type])?.(next, event);
  }
  return next.data;
}
