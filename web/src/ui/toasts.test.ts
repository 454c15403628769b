import { expect, test, vi } from "vitest";
import { Refused, Unreachable } from "../wire/http";
import { words } from "../words/index.svelte";
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

test("what was done is taken back; while the server is away that goes on being offered", async () => {
  vi.useFakeTimers();
  const toasts = new Toasts();
  const back = vi.fn();
  const press = async () => {
    const toast = toasts.list.at(-1)!;
    expect(toast.action?.label).toBe(words.common.undo);
    toasts.act(toast);
    // Pressed twice, it is done once, and nothing below it is pressed.
    toasts.act(toast);
    expect(toasts.list).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1000);
  };
  back.mockRejectedValueOnce(new Unreachable("Can’t reach the server."));
  toasts.undoable("Muted", back);
  await press();
  expect(toasts.list.map(({ kind, text }) => [kind, text])).toEqual([
    ["trouble", "Can’t reach the server. (Muted)"],
  ]);
  await press();
  expect(back).toHaveBeenCalledTimes(2);
  expect(toasts.list).toEqual([]);
  // What cannot be taken back any more is said, and not offered.
  back.mockRejectedValueOnce(new Error(words.common.notUndone));
  toasts.undoable("Muted", back);
  await press();
  expect(toasts.list.map(({ text, action }) => [text, action])).toEqual([
    [words.common.notUndone, undefined],
  ]);
  vi.useRealTimers();
});
