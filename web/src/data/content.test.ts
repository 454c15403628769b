import { describe, expect, it } from "vitest";
import {
  descriptionText,
  fitDimensions,
  isOnlyEmoji,
  internalFragment,
  plainText,
  prepareHtml,
  styleProperty,
} from "./content";

const THUMB =
  '<span aria-label="thumbs up" class="emoji emoji-1f44d" role="img" title="thumbs up">:thumbs_up:</span>';

describe("content", () => {
  it("moves styles aside without touching text", () => {
    expect(prepareHtml('<td style="text-align: left;">a style="b"</td>')).toBe(
      '<td data-style="text-align: left;">a style="b"</td>',
    );
  });

  it("turns emoji into characters", () => {
    expect(prepareHtml(THUMB)).toContain(">👍</span>");
  });

  it("recognizes messages of only emoji", () => {
    expect(isOnlyEmoji(`<p>${THUMB} ${THUMB}</p>`)).toBe(true);
    expect(isOnlyEmoji(`<p>${THUMB} 👍🏽 👩🏽‍💻</p>`)).toBe(true);
    expect(isOnlyEmoji("<p>👍🏽</p>")).toBe(true);
    expect(isOnlyEmoji("<p>👍🏽👍🏽👍🏽👍🏽👍🏽</p>")).toBe(false);
    expect(isOnlyEmoji("<p>100</p>")).toBe(false);
    expect(isOnlyEmoji(`<p>${THUMB} yes</p>`)).toBe(false);
    expect(isOnlyEmoji("<p></p>")).toBe(false);
  });

  it("reads style properties and plain text", () => {
    expect(styleProperty("color: red; text-align: right;", "text-align")).toBe("right");
    expect(plainText("<p>a &lt;b&gt;<br>\n&amp;amp;</p>")).toBe("a <b> &amp;");
  });

  it("fits images into a box", () => {
    expect(fitDimensions("4000x2000", 400, 300)).toEqual({ width: 400, height: 200 });
    expect(fitDimensions("20x10", 400, 300)).toEqual({ width: 20, height: 10 });
    expect(fitDimensions("x", 400, 300)).toBeNull();
  });

  it("recognizes internal links", () => {
    const origins = ["https://cafe.example"];
    expect(internalFragment("/#narrow/channel/1-a", origins)).toBe("narrow/channel/1-a");
    expect(internalFragment("#inbox", origins)).toBe("inbox");
    expect(internalFragment("https://cafe.example/#narrow/is/starred", origins)).toBe(
      "narrow/is/starred",
    );
    expect(internalFragment("https://cafe.example/help#narrow", origins)).toBeNull();
    expect(internalFragment("https://else.example/#narrow/is/starred", origins)).toBeNull();
  });
});

it("extracts a channel's description on one line", () => {
  const rendered_description = "<p>One <em>topic</em>, one recipe. <strong>Weigh</strong>!</p>";
  expect(descriptionText({ rendered_description })).toBe("One topic, one recipe. Weigh!");
});
