import { describe, expect, it } from "vitest";
import { excerpt } from "./excerpt";

const PICTURE =
  '<div class="message_inline_image"><a href="/user_uploads/1/a.png" title="oven"><img src="x"></a></div>';

describe("excerpt", () => {
  it.each([
    [
      "marks go",
      "<p>So <strong>hot</strong>,<br>\n<em>again</em>.</p>\n<p>1 &lt; 2 &amp;amp;</p>",
      "So hot, again. 1 < 2 &amp;",
    ],
    [
      "code stays",
      '<div class="codehilite"><pre><span></span><code>a = 1\nb</code></pre></div>',
      "a = 1 b",
    ],
    [
      "a quotation gives way",
      "<p>June said:</p><blockquote><p>No</p></blockquote><p>Yes</p>",
      "June said: Yes",
    ],
    ["or stands alone", "<blockquote>\n<p>No</p>\n</blockquote>", "No"],
    [
      "emoji",
      '<p>Hi <span class="emoji emoji-1f600" role="img" title="x">:x:</span>!</p>',
      "Hi 😀!",
    ],
    [
      "custom emoji",
      '<p><img alt=":cup:" class="emoji" src="/x" title="cup"> now</p>',
      ":cup: now",
    ],
    [
      "formulas once",
      '<p><span class="katex"><span class="katex-mathml">x^2</span><span class="katex-html">x2<span>2</span></span></span></p>',
      "x^2",
    ],
    [
      "previews of pages go",
      '<p>See</p><div class="message_embed"><a>x</a><div>long</div></div>',
      "See",
    ],
  ])("%s", (_, html, text) => {
    expect(excerpt(html).text).toBe(text);
  });

  it("names files and images, and hides spoilers", () => {
    const upload = '<p><a href="/user_uploads/1/a.png">oven</a></p>';
    expect(excerpt(upload)).toEqual({ text: "oven", sign: "file" });
    expect(excerpt(upload + PICTURE)).toEqual({ text: "oven", sign: "picture" });
    expect(excerpt(PICTURE)).toEqual({ text: "", sign: "picture" });
    const spoiler =
      '<div class="spoiler-block"><div class="spoiler-header">\n<p>The end</p>\n</div>' +
      `<div class="spoiler-content" aria-hidden="true"><div>He ${PICTURE}</div> dies</div></div><p>!</p>`;
    expect(excerpt(spoiler)).toEqual({ text: "The end !", sign: "hidden" });
  });

  it("is limited to one line, even without word breaks", () => {
    expect(excerpt("<p>" + "word ".repeat(4000)).text.length).toBeLessThan(210);
    expect(excerpt(`<p>a${"🎈".repeat(300)}`).text.endsWith("🎈…")).toBe(true);
    expect(excerpt('<div class="spoiler-content">' + "<b".repeat(9000)).sign).toBe("hidden");
  });
});
