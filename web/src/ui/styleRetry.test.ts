import { afterEach, expect, test, vi } from "vitest";
import { withStyles } from "./styleRetry";

afterEach(() => vi.unstubAllGlobals());

/** A fake link to a failed style sheet. */
class Link {
  static failed: Link[] = [];
  static asked: Link[] = [];
  ends: Record<string, () => void> = {};
  href = "/assets/Pages.css";
  cloneNode = () => new Link();
  removeAttribute = () => undefined;
  replaceWith(fresh: Link) {
    Link.failed = [];
    Link.asked.push(fresh);
  }
  addEventListener(name: string, end: () => void) {
    this.ends[name] = end;
  }
  fail() {
    Link.failed = [this];
    this.ends["error"]!();
  }
}

test("a failed module waits for its styles, and others don't", async () => {
  vi.stubGlobal("document", { querySelectorAll: () => Link.failed });
  const script = vi.fn<() => Promise<string>>();
  const pages = () => withStyles(() => script());
  script.mockRejectedValueOnce(new Error("Unable to preload CSS"));
  await expect(pages()).rejects.toThrow("preload");
  // Offline again: it fails, but what was loaded stays.
  Link.failed = [new Link()];
  script.mockResolvedValue("pages");
  const [first, second] = [pages(), pages()];
  expect(await withStyles(async () => "menu")).toBe("menu");
  expect(Link.asked).toHaveLength(1);
  Link.asked[0]!.fail();
  await expect(first).rejects.toThrow("Pages.css");
  await expect(second).rejects.toThrow("Pages.css");
  expect(script).toHaveBeenCalledTimes(1);
  const third = pages();
  Link.asked[1]!.ends["load"]!();
  expect(await third).toBe("pages");
});
