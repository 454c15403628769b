import { expect, it } from "vitest";
import { arrivedAs } from "./sending";

const message = (id: number, content: string, sender_id = 1) => ({ id, content, sender_id });

it("finds a message that arrived although no answer came", () => {
  const sent = { content: "\nhello \n", after: 10 };
  const none = new Set<number>();
  expect(arrivedAs(sent, [message(11, "hello")], 1, none)).toBe(11);
  expect(arrivedAs(sent, [message(9, "hello")], 1, none)).toBeNull();
  expect(arrivedAs(sent, [message(11, "hello", 2)], 1, none)).toBeNull();
  expect(arrivedAs(sent, [message(11, "hello"), message(12, "hello")], 1, new Set([11]))).toBe(12);
});
