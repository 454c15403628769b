import { afterEach, describe, expect, it, vi } from "vitest";
import { Composition, type Field } from "./composition.svelte";

const FILE = "[bread.txt](/user_uploads/1/ab/bread.txt)";

/** A fake server that completes uploads on demand. */
function uploading(): () => void {
  const going: { onload: () => void; responseText: string }[] = [];
  class Request {
    upload = {};
    onload = () => {};
    responseText = JSON.stringify({
      result: "success",
      url: "/user_uploads/1/ab/bread.txt",
      filename: "bread.txt",
    });
    open() {}
    setRequestHeader() {}
    send() {
      going.push(this);
    }
  }
  vi.stubGlobal("XMLHttpRequest", Request);
  vi.stubGlobal("document", { cookie: "" });
  return () => going.splice(0).forEach((request) => request.onload());
}

/** A fake field. */
function fieldOf(value: string): Field & { hasFocus: boolean } {
  return {
    value,
    selectionStart: 0,
    selectionEnd: 0,
    hasFocus: false,
    focus() {
      this.hasFocus = true;
    },
    setSelectionRange(start, end) {
      Object.assign(this, { selectionStart: start, selectionEnd: end });
    },
  };
}

afterEach(() => vi.unstubAllGlobals());

describe("composition", () => {
  it("receives a file that finishes uploading after the field is gone", async () => {
    const arrive = uploading();
    const left = vi.fn();
    const written = new Composition("Rye", undefined, left);
    const leave = written.attach(fieldOf("Rye"));
    written.addFiles([new File(["flour"], "bread.txt")], 1000);
    expect(written.awaits).toBe("file");
    leave();
    arrive();
    await vi.waitFor(() => expect(written.awaits).toBeNull());
    expect(written.content).toBe(`Rye\n${FILE}`);
    expect(left).toHaveBeenCalledWith(expect.stringContaining("bread.txt"), FILE);
    // An empty recording.
    written.addLater("note.webm", Promise.resolve(null), 1000);
    await vi.waitFor(() => expect(written.content).toBe(`Rye\n${FILE}`));
  });

  it("leaves a file that arrives while it's hidden to its draft, which may have changed", async () => {
    const arrive = uploading();
    const [changed, left] = [vi.fn(), vi.fn()];
    const written = new Composition("Rye", changed, left);
    written.attach(fieldOf("Rye"));
    written.addFiles([new File(["flour"], "bread.txt")], 1000);
    changed.mockClear();
    written.hidden = true;
    arrive();
    await vi.waitFor(() => expect(left).toHaveBeenCalledWith(expect.anything(), FILE));
    expect(changed).not.toHaveBeenCalled();
  });

  it("leaves the preview on the next edit", () => {
    const written = new Composition("Rye");
    const field = fieldOf("Rye");
    written.attach(field);
    written.preview = true;
    written.toEnd();
    expect([written.preview, field.hasFocus, field.selectionEnd]).toEqual([true, false, 3]);
    written.apply((now) => ({ ...now, start: 1, end: 2 }));
    expect([written.preview, field.hasFocus, field.selectionEnd]).toEqual([false, true, 2]);
  });
});
