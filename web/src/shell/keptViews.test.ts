import { expect, it } from "vitest";
import { narrowOf } from "../data/narrow";
import type { Narrow } from "../data/conversations";
import { KeptViews } from "./keptViews.svelte";

const topic = (name: string): Narrow => narrowOf({ kind: "topic", channelId: 1, topic: name });
const open = (views: KeptViews, name: string) =>
  views.open({ view: "narrow", narrow: topic(name) });
const names = (views: KeptViews) => views.all.map(({ narrow }) => narrow?.[1]?.operand ?? "inbox");
const moved = (from: string, to: string, stream = 1) =>
  ({
    type: "update_message",
    id: 1,
    propagate_mode: "change_all",
    stream_id: stream,
    orig_subject: from,
    subject: to,
  }) as never;
const channels = new Map([[1, {}]]);

it("keeps views in their order, and shows one", () => {
  const views = new KeptViews();
  open(views, "a");
  views.open({ view: "inbox" });
  open(views, "b");
  const [first] = views.all;
  open(views, "a");
  expect(names(views)).toEqual(["a", "inbox", "b"]);
  expect(views.shown).toBe(first);
  views.open({ view: "drafts" });
  expect(views.shown).toBeNull();
  expect(names(views)).toEqual(["a", "inbox", "b"]);
});

it("has one view for the inbox in both orders", () => {
  const views = new KeptViews();
  views.open({ view: "inbox" });
  views.open({ view: "recent" });
  expect(views.all).toHaveLength(1);
  expect(views.shown?.view).toBe("recent");
});

it("drops what wasn't used for the longest time", () => {
  const views = new KeptViews();
  for (const name of ["a", "b", "c", "d", "e", "f", "g", "a", "h"]) open(views, name);
  views.trim();
  expect(names(views)).toEqual(["a", "c", "d", "e", "f", "g", "h"]);
  for (const name of ["next", "after", "later"]) views.prepare(topic(name));
  expect(names(views)).toEqual(["a", "c", "d", "e", "f", "g", "h", "after", "later"]);
  expect(views.shown?.narrow).toEqual(topic("h"));
});

it("keeps a limited number of views while a key is held down", () => {
  const views = new KeptViews();
  for (let number = 0; number < 100; number += 1) {
    open(views, `topic ${number}`);
    expect(views.all.length).toBeLessThanOrEqual(16);
  }
  expect(views.shown?.narrow).toEqual(topic("topic 99"));
});

it("follows a topic that moves", () => {
  const views = new KeptViews();
  open(views, "old");
  const [view] = views.all;
  views.follow(moved("old", "new"), channels);
  expect(view?.narrow).toEqual(topic("new"));
  open(views, "new");
  expect(views.all).toHaveLength(1);
  expect(views.shown).toBe(view);
});

it("follows a topic that changes only in case", () => {
  const views = new KeptViews();
  open(views, "old");
  open(views, "Old");
  views.follow(moved("old", "Old"), channels);
  expect(views.all).toContain(views.shown);
});

it("keeps one view of two topics that become one, the shown one if it is", () => {
  const views = new KeptViews();
  open(views, "target");
  open(views, "old");
  const { shown } = views;
  views.follow(moved("old", "target"), channels);
  expect(views.all).toEqual([shown]);
  expect(shown?.narrow).toEqual(topic("target"));

  open(views, "other");
  views.follow(moved("target", "other"), channels);
  expect(views.all).toEqual([views.shown]);
  expect(views.shown?.narrow).toEqual(topic("other"));
});

it("doesn't follow into a channel that the user can't see", () => {
  const views = new KeptViews();
  open(views, "old");
  const event = { ...(moved("old", "new") as object), new_stream_id: 2 } as never;
  views.follow(event, channels);
  expect(names(views)).toEqual(["old"]);
});

it("drops hidden views only", () => {
  const views = new KeptViews();
  open(views, "a");
  open(views, "b");
  views.dropHidden(({ narrow }) => narrow !== null);
  expect(names(views)).toEqual(["b"]);
});
