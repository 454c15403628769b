import { expect, test } from "vitest";
import { gifProvider, type GifProvider } from "./gifs";
import { gifAddress, gifLink, gifsIn } from "./gifSearch";

const giphy: GifProvider = { name: "GIPHY", key: "k-1", rating: 4 };
const klipy: GifProvider = { name: "KLIPY", key: "k-2", rating: 2 };

test.each([
  [{ realm_gif_rating_policy: 2, giphy_api_key: "", klipy_api_key: "" }, null],
  [{ realm_gif_rating_policy: 0, giphy_api_key: "k-1" }, null],
  [{ giphy_api_key: "k-1" }, null],
  [{ realm_gif_rating_policy: 4, giphy_api_key: "k-1", klipy_api_key: "k-2" }, giphy],
  [{ realm_gif_rating_policy: 2, klipy_api_key: "k-2" }, klipy],
])("pictures are looked for where there is a key, and some are allowed: %j", (realm, expected) => {
  expect(gifProvider(realm)).toEqual(expected);
});

test("what is asked names the key, the words and how much is allowed", () => {
  const asked = (provider: GifProvider, text: string) => {
    const { origin, pathname, searchParams } = new URL(gifAddress(provider, text, "pt"));
    return [origin + pathname, Object.fromEntries(searchParams)];
  };
  expect(asked(giphy, " tea & cake ")).toEqual([
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
  expect(asked(giphy, "")[0]).toBe("https://api.giphy.com/v1/gifs/trending");
  expect(asked(klipy, "tea")).toEqual([
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
  expect(asked(klipy, " ")[0]).toBe("https://api.klipy.com/v2/featured");
});

test("what is found is shown small and sent whole; what is no picture, or there twice, is left out", () => {
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

test("it is sent as a link that nothing can break out of", () => {
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
