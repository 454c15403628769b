import { describe, expect, it } from "vitest";
import { fileKind, pathIdOf, downloadUrl, formatSize } from "./files";

describe("file", () => {
  it.each([
    ["Prices.PDF", "", "text"],
    ["a.b.tar.gz", "application/gzip", "archive"],
    ["plan.xlsx", "application/octet-stream", "table"],
    ["note", "text/plain", "text"],
    ["odd.zip", "audio/webm", "sound"],
    ["v1.2", "", "other"],
    [".bashrc", "", "other"],
    ["nothing", "", "other"],
  ])("kind of %s %s", (name, type, kind) => {
    expect(fileKind(name, type)).toBe(kind);
  });

  it.each([
    [0, "0 bytes"],
    [1, "1 byte"],
    [999, "999 bytes"],
    [1000, "1 kB"],
    [1536, "1.5 kB"],
    [138_345, "138 kB"],
    [1_400_000, "1.4 MB"],
    [25_000_000, "25 MB"],
    [3e9, "3 GB"],
    [5e15, "5,000 TB"],
  ])("size of %d bytes", (bytes, text) => {
    expect(formatSize(bytes, "en")).toBe(text);
  });

  it("path ID from any form of its URL", () => {
    expect(pathIdOf("/user_uploads/2/ab/key/a%20b.pdf")).toBe("2/ab/key/a b.pdf");
    expect(pathIdOf("/user_uploads/download/2/ab/key/a.pdf#page=2")).toBe("2/ab/key/a.pdf");
    expect(pathIdOf("/user_uploads/2/ab/key/100%.pdf")).toBe("2/ab/key/100%.pdf");
    expect(downloadUrl("/user_uploads/2/ab/key/a.pdf")).toBe(
      "/user_uploads/download/2/ab/key/a.pdf",
    );
    expect(downloadUrl("/user_uploads/download/2/a")).toBe("/user_uploads/download/2/a");
  });
});
