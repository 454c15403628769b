/** Pinned messages of channels, updated by events. */

import { topicKey } from "./conversations";
import type { ServerEvent } from "../wire/events";
import type { Pin } from "../wire/objects";

/** Pins of each loaded channel, newest first. */
export type Known = ReadonlyMap<number, readonly Pin[]>;

export interface After {
  known: Known;
  /** Channels to reload: the event doesn't contain enough. */
  unsure: readonly number[];
}

/** The pins after an event. */
export function pinsAfter(known: Known, event: ServerEvent): After {
  switch (event.type) {
    case "pins": {
      const pin = event["pin"] as Pin;
      const others = known
        .get(pin.stream_id)
        ?.filter((other) => other.message_id !== pin.message_id);
      if (!others) return { known, unsure: [] };
      const pins = event.op === "add" ? inOrder([...others, pin]) : others;
      return { known: new Map(known).set(pin.stream_id, pins), unsure: [] };
    }
    case "delete_message": {
      const removed = new Set((event["message_ids"] ?? [event["message_id"]]) as number[]);
      const after = new Map(known);
      for (const [channelId, pins] of known) {
        const left = pins.filter((pin) => !removed.has(pin.message_id));
        if (left.length < pins.length) after.set(channelId, left);
      }
      return { known: after, unsure: [] };
    }
    case "update_message":
      return "propagate_mode" in event ? moved(known, event) : { known, unsure: [] };
    case "subscription":
      return { known, unsure: channelsOf(event).filter((id) => known.has(id)) };
    case "stream": {
      // Access to its history may have changed.
      const id = event["stream_id"] as number;
      return { known, unsure: event.op === "update" && known.has(id) ? [id] : [] };
    }
    default:
      return { known, unsure: [] };
  }
}

function channelsOf(event: ServerEvent): number[] {
  if (event.op !== "add" && event.op !== "remove") return [];
  return (event["subscriptions"] as { stream_id: number }[]).map(
    (subscription) => subscription.stream_id,
  );
}

function moved(known: Known, event: ServerEvent): After {
  const from = event["stream_id"] as number;
  const to = (event["new_stream_id"] ?? from) as number;
  const topic = String(event["subject"] ?? event["orig_subject"]);
  const ids = new Set(event["message_ids"] as number[]);
  const after = new Map(known);
  const pinned = known.get(from) ?? [];
  if (from === to) {
    const pins = pinned.map((pin) => (ids.has(pin.message_id) ? { ...pin, topic } : pin));
    if (known.has(from)) after.set(from, pins);
    return { known: after, unsure: [] };
  }
  const left = pinned.filter((pin) => !ids.has(pin.message_id));
  if (left.length < pinned.length) after.set(from, left);
  // Moved pins are known only if the source channel's are.
  const isUnsure = known.has(to) && (!known.has(from) || left.length < pinned.length);
  return { known: after, unsure: isUnsure ? [to] : [] };
}

function inOrder(pins: Pin[]): Pin[] {
  return pins.sort((a, b) => b.pinned_at - a.pinned_at || b.message_id - a.message_id);
}

/** Pins of a topic, or all of them for null. */
export function pinsIn(pins: readonly Pin[], topic: string | null): readonly Pin[] {
  if (topic === null) return pins;
  const key = topicKey(0, topic);
  return pins.filter((pin) => topicKey(0, pin.topic) === key);
}
