import { expect, test } from "vitest";
import { dateFormat, listFormat } from "./formats";

test("each format is made once, and each language has its own", () => {
  const day = { weekday: "long", timeZone: "UTC" } as const;
  expect(dateFormat("en", { ...day })).toBe(dateFormat("en", { ...day }));
  expect(dateFormat("en", day).format(0)).toBe("Thursday");
  expect(dateFormat("de", day).format(0)).toBe("Donnerstag");
  expect(dateFormat("en", { month: "long", timeZone: "UTC" }).format(0)).toBe("January");
  expect(listFormat("es").format(["Ana", "Bo"])).toBe("Ana y Bo");
});
