import { expect, test, describe, it } from "vitest";
import { gifProvider, type GifProvider, callProvider } from "./providers";
import { gifAddress, gifLink, gifsIn } from "./gifSearch";
import { callName, jitsiLink } from "../compose/callLink";

const giphy: GifProvider = { name: "GIPHY", key: "k-1", rating: 4 };
const klipy: GifProvider = { name: "KLIPY", key: "k-2", rating: 2 };

test.each([
  [{ realm_gif_rating_policy: 2, giphy_api_key: "", klipy_api_key: "" }, null],
  [{ realm_gif_rating_policy: 0, giphy_api_key: "k-1" }, null],
  [{ giphy_api_key: "k-1" }, null],
  [{ realm_gif_rating_policy: 4, giphy_api_key: "k-1", klipy_api_key: "k-2" }, giphy],
  [{ realm_gif_rating_policy: 2, klipy_api_key: "k-2" }, klipy],
])("GIF search needs a key and an allowed rating: %j", (realm, expected) => {
  expect(gifProvider(realm)).toEqual(expected);
});

test("the search URL has the key, query, and rating", () => {
  const search = (provider: GifProvider, text: string) => {
    const { origin, pathname, searchParams } = new URL(gifAddress(provider, text, "pt"));
    return [origin + pathname, Object.fromEntries(searchParams)];
  };
  expect(search(giphy, " tea & cake ")).toEqual([
    "https://api.giphy.com/v1/gifs/search",
    {
      api_key: "k-1",
      rating: "pg-13",
      bundle: "messaging_non_clips",
      lang: "pt",
      limit: "30",
      q: "tea & cake",
    },
  ]);
  expect(search(giphy, "")[0]).toBe("https://api.giphy.com/v1/gifs/trending");
  expect(search(klipy, "tea")).toEqual([
    "https://api.klipy.com/v2/search",
    {
      key: "k-2",
      contentfilter: "high",
      media_filter: "gif,tinygif",
      locale: "pt",
      limit: "30",
      q: "tea",
    },
  ]);
  expect(search(klipy, " ")[0]).toBe("https://api.klipy.com/v2/featured");
});

test("results have previews and full URLs, without invalid or duplicate ones", () => {
  const image = (name: string) => ({ url: `https://media1.giphy.com/${name}`, width: "200" });
  const data = [
    { id: "a", title: "Tea", images: { fixed_width: image("s.gif"), downsized: image("d.gif") } },
    { id: "a", title: "Tea", images: { fixed_width: image("s.gif"), downsized: image("d.gif") } },
    { id: "b", title: "?", images: { fixed_width: { url: "javascript:alert(1)" } } },
    {},
  ];
  expect(gifsIn(giphy, { data })).toEqual([
    {
      id: "a",
      title: "Tea",
      url: "https://media1.giphy.com/d.gif",
      preview: "https://media1.giphy.com/s.gif",
      width: 200,
      height: 1,
    },
  ]);
  const media_formats = {
    gif: { url: "https://static.klipy.com/a.gif", dims: [498, 280] },
    tinygif: { url: "https://static.klipy.com/t.gif", dims: [220, 124] },
  };
  const results = [{ id: 7, content_description: "Cake", media_formats }];
  expect(gifsIn(klipy, { results })).toMatchObject([
    { id: "7", title: "Cake", preview: "https://static.klipy.com/t.gif", width: 220 },
  ]);
  expect(gifsIn(klipy, null)).toEqual([]);
});

test("a GIF's link can't be broken by its title", () => {
  const gif = { ...gifsIn(klipy, null)[0], id: "", preview: "", width: 1, height: 1 };
  expect(gifLink({ ...gif, title: "a [b](c)\n", url: "https://x.example/a.gif?b=(1)" })).toBe(
    "[a b (c)](https://x.example/a.gif?b=%281%29)",
  );
  expect(gifLink({ ...gif, title: "@**all** `tea`", url: "https://x.example/a.gif" })).toBe(
    "[all tea](https://x.example/a.gif)",
  );
  expect(gifLink({ ...gif, title: " ", url: "https://x.example/a.gif" })).toBe(
    "[GIF](https://x.example/a.gif)",
  );
});

const jitsi = { realm_video_chat_provider: 1, server_jitsi_server_url: "https://meet.jit.si" };
const zoom = { zoom_server_to_server: { id: 5, name: "Zoom" } };
const blue = { big_blue_button: { id: 4, name: "BigBlueButton" } };

describe("calls", () => {
  it.each([
    [{ realm_video_chat_provider: 0 }, null],
    [{}, null],
    [jitsi, "jitsi"],
    [{ realm_video_chat_provider: 1 }, null],
    [{ ...jitsi, realm_jitsi_server_url: "javascript:alert(1)" }, null],
    [{ realm_video_chat_provider: 4 }, null],
    [{ realm_video_chat_provider: 4, realm_available_video_chat_providers: blue }, "bigbluebutton"],
    [{ realm_video_chat_provider: 3 }, null],
    [{ realm_video_chat_provider: 5, realm_available_video_chat_providers: zoom }, "zoom"],
    [{ realm_video_chat_provider: 3, realm_available_video_chat_providers: zoom }, null],
  ])("use the organization's provider: %j", (realm, provider) => {
    expect(callProvider(realm)).toBe(provider);
  });

  it("get a unique Jitsi link, on the organization's server first", () => {
    const custom = { ...jitsi, realm_jitsi_server_url: "https://calls.example.com/" };
    expect(jitsiLink(custom, "name", false)).toBe(
      "https://calls.example.com/name#config.startWithVideoMuted=false",
    );
    expect(jitsiLink(jitsi, "name", true)).toBe(
      "https://meet.jit.si/name#config.startWithVideoMuted=true",
    );
    expect(callName()).toMatch(/^[a-z]{20}$/);
    expect(callName()).not.toBe(callName());
  });
});
