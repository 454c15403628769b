import { describe, expect, it } from "vitest";
import { type Integration, webhookUrl } from "./webhookUrl";

const GITHUB: Integration = {
  name: "github",
  display_name: "GitHub",
  all_event_types: ["issues", "push", "star"],
  url_options: [{ key: "branches", label: "Only these branches", input_type: "text" }],
  is_signed: true,
  takes_templates: false,
};
const ZAPIER = { ...GITHUB, name: "zapier", all_event_types: null, url_options: [] };
const OWNER = { kind: "owner", id: undefined, topic: "" } as const;
const ALL = { events: [], branches: "" };
const BEGINS = "https://chat.test/api/v1/external";

describe("webhook URL", () => {
  it.each([
    [GITHUB, OWNER, ALL, "/github?api_key=k"],
    [GITHUB, { ...OWNER, topic: "left over" }, ALL, "/github?api_key=k"],
    [
      GITHUB,
      { kind: "channel", id: 7, topic: " a&b " },
      ALL,
      "/github?api_key=k&stream=7&topic=a%26b",
    ],
    [GITHUB, { kind: "person", id: 9, topic: "" }, ALL, "/github?api_key=k&to=9"],
    [
      GITHUB,
      OWNER,
      { events: ["star", "push", "gone"], branches: "main, next*" },
      "/github?api_key=k&only_events=%5B%22push%22%2C%22star%22%5D&branches=main%2C%20next*",
    ],
    [GITHUB, OWNER, { events: ["issues", "push", "star"], branches: "" }, "/github?api_key=k"],
    [ZAPIER, OWNER, { events: ["push"], branches: "main" }, "/zapier?api_key=k"],
  ] as const)("%#", (integration, to, wanted, address) => {
    expect(webhookUrl("https://chat.test/", "k", integration, to, wanted)).toBe(BEGINS + address);
  });
});
