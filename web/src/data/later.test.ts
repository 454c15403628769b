import { expect, it } from "vitest";
import { localInput, presets, timeMark } from "./later";
import { quotation, withQuotation } from "./quoting";

it("offers times to come", () => {
  const names = (date: Date) => presets(date).map((one) => one.when);
  // A Wednesday morning and a Sunday night.
  expect(names(new Date(2026, 10, 18, 10))).toEqual([
    "hour",
    "threeHours",
    "evening",
    "tomorrow",
    "monday",
  ]);
  expect(names(new Date(2026, 10, 22, 22))).toEqual(["hour", "threeHours", "tomorrow"]);
  const monday = presets(new Date(2026, 10, 18, 10)).at(-1);
  expect(new Date((monday?.at ?? 0) * 1000).getDay()).toBe(1);
});

it("writes times", () => {
  const time = new Date(2026, 0, 5, 7, 8);
  expect(localInput(time)).toBe("2026-01-05T07:08");
  expect(timeMark(time)).toMatch(/^<time:2026-01-05T07:08:00[+-]\d\d:\d\d>$/);
});

it("quotes", () => {
  const said = (mention: string, link: string) => `${mention} [said](${link}):`;
  const quote = quotation(
    { senderId: 3, senderName: "Ana", text: "```\nx\n```", link: "/#n" },
    said,
  );
  expect(quote).toBe("@_**Ana|3** [said](/#n):\n````quote\n```\nx\n```\n````\n");
  expect(withQuotation("before", "Q\n", "after")).toBe("before\n\nQ\n\nafter");
  expect(withQuotation("", "Q\n", "")).toBe("Q\n");
});
