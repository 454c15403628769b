import { get } from "../wire/http";

/** What the author typed. */
export async function sourceOf(messageId: number): Promise<string> {
  const { message } = await get<{ message: { content: string } }>(`/messages/${messageId}`, {
    apply_markdown: false,
    allow_empty_topic_name: true,
  });
  return message.content;
}
