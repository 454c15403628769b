import { expect, test, vi } from "vitest";
import { Refused } from "../wire/http";
import { Toasts } from "./toasts.svelte";

test("a refused request is shown, and one that succeeds is not", async () => {
  vi.useFakeTimers();
  const toasts = new Toasts();
  expect(await toasts.attempt(Promise.resolve())).toBe(true);
  expect(toasts.list).toEqual([]);
  // Who is not signed in is led to the door: that is enough.
  const signedOut = new Refused(401, "UNAUTHORIZED", "Sign in first", {});
  expect(await toasts.attempt(Promise.reject(signedOut))).toBe(false);
  expect(toasts.list).toEqual([]);
  expect(await toasts.attempt(Promise.reject(new Error("Not allowed")))).toBe(false);
  expect(toasts.list.map(({ kind, text }) => [kind, text])).toEqual([["trouble", "Not allowed"]]);
  vi.useRealTimers();
});
