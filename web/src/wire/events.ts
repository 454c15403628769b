/** Events of a queue. Their fields are read where they are folded. */

export interface ServerEvent {
  id: number;
  type: string;
  op?: string;
  [field: string]: unknown;
}

/** The messages that are not as they were because of the event, by ID; new ones are none of them. */
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
