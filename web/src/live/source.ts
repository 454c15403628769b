import { get } from "../wire/http";

/** A message's Markdown source. */
export async function sourceOf(messageId: number): Promise<string> {
  const { message } = await get<{ message: { content: string } }>(`/messages/${messageId}`, {
    apply_markdown: false,
    allow_empty_topic_name: true,
  });
  return message.content;
}
