import { expect, test, vi } from "vitest";
import { ApiError, NetworkError } from "../wire/http";
import { words } from "../words/index.svelte";
import { Toasts } from "./toasts.svelte";

test("shows an error only if the request fails", async () => {
  vi.useFakeTimers();
  const toasts = new Toasts();
  expect(await toasts.attempt(Promise.resolve())).toBe(true);
  expect(toasts.list).toEqual([]);
  // A redirect to sign-in is enough.
  const signedOut = new ApiError(401, "UNAUTHORIZED", "Sign in first", {});
  expect(await toasts.attempt(Promise.reject(signedOut))).toBe(false);
  expect(toasts.list).toEqual([]);
  expect(await toasts.attempt(Promise.reject(new Error("Not allowed")))).toBe(false);
  expect(toasts.list.map(({ kind, text }) => [kind, text])).toEqual([["error", "Not allowed"]]);
  vi.useRealTimers();
});

test("undo runs once, and stays available while offline", async () => {
  vi.useFakeTimers();
  const toasts = new Toasts();
  const back = vi.fn();
  const press = async () => {
    const toast = toasts.list.at(-1)!;
    expect(toast.action?.label).toBe(words.common.undo);
    toasts.act(toast);
    // A double click runs it once and hits nothing below.
    toasts.act(toast);
    expect(toasts.list).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1000);
  };
  back.mockRejectedValueOnce(new NetworkError("Can’t reach the server."));
  toasts.undoable("Muted", back);
  await press();
  expect(toasts.list.map(({ kind, text }) => [kind, text])).toEqual([
    ["error", "Can’t reach the server. (Muted)"],
  ]);
  await press();
  expect(back).toHaveBeenCalledTimes(2);
  expect(toasts.list).toEqual([]);
  // Undo that is no longer possible isn't offered again.
  back.mockRejectedValueOnce(new Error(words.common.undoFailed));
  toasts.undoable("Muted", back);
  await press();
  expect(toasts.list.map(({ text, action }) => [text, action])).toEqual([
    [words.common.undoFailed, undefined],
  ]);
  vi.useRealTimers();
});
