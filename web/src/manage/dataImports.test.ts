import { expect, it } from "vitest";
import { timeLeft } from "./dataImports";

it("names the time that is left in the largest fitting unit", () => {
  expect(timeLeft(0, "en")).toBe("1 second");
  expect(timeLeft(89, "en")).toBe("89 seconds");
  expect(timeLeft(120, "en")).toBe("2 minutes");
  expect(timeLeft(7200, "de")).toBe("2 Stunden");
});
