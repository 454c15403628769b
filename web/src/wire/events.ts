/** Events of a queue. Their fields are parsed where they are folded. */

export interface ServerEvent {
  id: number;
  type: string;
  op?: string;
  [field: string]: unknown;
}

/** IDs of existing messages that an event changes. */
export function concerned(event: ServerEvent): readonly number[] {
  switch (event.type) {
    case "update_message":
    case "delete_message":
      return (event["message_ids"] ?? [event["message_id"]]) as number[];
    case "update_message_flags":
      return event["messages"] as number[];
    case "reaction":
    case "submessage":
      return [event["message_id"] as number];
    default:
      return [];
  }
}
