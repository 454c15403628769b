import { expect, it } from "vitest";
import { shownBanners } from "./banners";

const banner = (id: number, ends_at: number) => ({
  id,
  content: "Down tonight",
  posted_by: 1,
  posted_at: 0,
  ends_at,
});

it("shows banners that haven't expired and weren't closed", () => {
  const all = [banner(1, 100), banner(2, 300), banner(3, 300)];
  expect(shownBanners(all, [3], 200).map((banner) => banner.id)).toEqual([2]);
});
