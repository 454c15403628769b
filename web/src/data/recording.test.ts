import { describe, expect, it } from "vitest";
import { clockText, audioFormat, loudness, recordingName, plainType } from "./recording";

describe("voice message", () => {
  it("uses the most compatible format", () => {
    expect(audioFormat(() => true).extension).toBe("m4a");
    expect(audioFormat((type) => type.includes("webm"))).toEqual({
      mimeType: "audio/webm;codecs=opus",
      extension: "weba",
    });
    expect(audioFormat(() => false).mimeType).toBe("");
    expect(plainType("audio/webm; codecs=opus")).toBe("audio/webm");
    expect(plainType("")).toBe("audio/webm");
  });

  it("is named by its time", () => {
    expect(recordingName("Voice note", new Date(2026, 2, 1, 9, 5), "m4a")).toBe(
      "Voice note 2026-03-01 09.05.m4a",
    );
  });

  it("formats its duration and level", () => {
    expect([0, 59.9, 65, 600].map(clockText)).toEqual(["0:00", "0:59", "1:05", "10:00"]);
    expect(loudness(new Uint8Array(8).fill(128))).toBe(0);
    expect(loudness(new Uint8Array([0, 255]))).toBe(1);
    expect(loudness(new Uint8Array())).toBe(0);
  });
});
