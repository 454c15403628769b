import { expect, test } from "vitest";
import { clientName } from "./formats";
import { ago } from "../../words/times";

test("durations use the largest unit", () => {
  expect(ago(1000, 1000)).toBe("now");
  expect(ago(1000 - 7300, 1000)).toBe("2 hours ago");
  expect(ago(1000 + 86400 * 3, 1000)).toBe("in 3 days");
});

test("names browsers", () => {
  expect(clientName("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")).toBe(
    "Firefox, Linux",
  );
  expect(
    clientName("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"),
  ).toBe("Chrome, Windows");
  expect(clientName("curl/8.1")).toBe("curl/8.1");
});
