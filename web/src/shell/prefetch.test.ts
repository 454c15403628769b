import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { prefetchChunks } from "./prefetch";

const whenIdle = vi.fn();

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("window", { requestIdleCallback: whenIdle });
  vi.stubGlobal("requestIdleCallback", whenIdle);
});
afterEach(() => {
  whenIdle.mockReset();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test.each([
  [undefined, 1],
  [{ saveData: false }, 1],
  [{ saveData: true }, 0],
])("with %o it prefetches %i chunks", (connection, times) => {
  vi.stubGlobal("navigator", { connection });
  const stop = prefetchChunks();
  vi.advanceTimersByTime(10_000);
  expect(whenIdle).toHaveBeenCalledTimes(times);
  stop();
});
