import { expect, test, vi } from "vitest";
import { Toasts } from "./toasts.svelte";

test("a refused request is shown, and one that succeeds is not", async () => {
  vi.useFakeTimers();
  const toasts = new Toasts();
  expect(await toasts.attempt(Promise.resolve())).toBe(true);
  expect(toasts.list).toEqual([]);
  expect(await toasts.attempt(Promise.reject(new Error("Not allowed")))).toBe(false);
  expect(toasts.list.map(({ kind, text }) => [kind, text])).toEqual([["trouble", "Not allowed"]]);
  vi.useRealTimers();
});
