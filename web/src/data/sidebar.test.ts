import { describe, expect, it } from "vitest";
import { visibleTopics, sidebarSections, topicRows, withTopic, type SidebarState } from "./sidebar";

function layout(settings: object, channels: object[]): SidebarState {
  const whole = channels.map((channel, at) => ({
    stream_id: at + 1,
    is_archived: false,
    is_recently_active: true,
    folder_id: null,
    subscription: { pin_to_top: false, is_muted: false },
    ...channel,
  }));
  return {
    settings,
    channels: new Map(whole.map((channel) => [channel.stream_id, channel])),
    folders: new Map([
      [1, { id: 1, name: "Kitchen", order: 2, is_archived: false }],
      [2, { id: 2, name: "Bar", order: 1, is_archived: false }],
      [3, { id: 3, name: "Old", order: 0, is_archived: true }],
    ]),
  } as unknown as SidebarState;
}

const CHANNELS = [
  { name: "zeta", subscription: { pin_to_top: true, is_muted: false } },
  { name: "beans", folder_id: 2 },
  { name: "cakes", folder_id: 1 },
  { name: "aside", folder_id: 3 },
  { name: "Älteres", is_recently_active: false },
  { name: "alarms", subscription: { pin_to_top: false, is_muted: true } },
  { name: "left", subscription: null },
  { name: "ended", is_archived: true },
];

function shape(known: SidebarState, filter?: string) {
  return sidebarSections(known, filter).map(
    (section) =>
      `${section.id}${section.name && ` ${section.name}`}: ${section.channels.map((channel) => channel.name).join(" ")}`,
  );
}

describe("sections", () => {
  it("are pinned channels, folders in order, and the rest with muted ones last", () => {
    expect(shape(layout({ demote_inactive_streams: 3 }, CHANNELS))).toEqual([
      "pinned: zeta",
      "folder-2 Bar: beans",
      "folder-1 Kitchen: cakes",
      "rest: Älteres aside alarms",
    ]);
  });

  it("separate inactive channels if requested, or if there are many", () => {
    expect(shape(layout({ demote_inactive_streams: 2 }, CHANNELS)).at(-1)).toBe(
      "inactive: Älteres",
    );
    expect(shape(layout({ demote_inactive_streams: 1 }, CHANNELS)).at(-1)).not.toContain(
      "inactive",
    );
    const many = [...CHANNELS, ...Array.from({ length: 30 }, (_, at) => ({ name: `room ${at}` }))];
    expect(shape(layout({ demote_inactive_streams: 1 }, many)).at(-1)).toBe("inactive: Älteres");
  });

  it("can omit folders, and filter", () => {
    const known = layout({ web_left_sidebar_show_channel_folders: false }, CHANNELS);
    expect(shape(known, " BE")).toEqual(["rest: beans"]);
  });
});

describe("topics", () => {
  const known = {
    me: 1,
    channels: new Map([[7, { subscription: { is_muted: false } }]]),
    topicPolicies: new Map([
      ["c7/muted", { visibility_policy: 1 }],
      ["c7/old", { visibility_policy: 3 }],
    ]),
    topicNames: new Map([["c7/unheard", "Unheard"]]),
    mutedUsers: new Set(),
    unread: {
      by: new Map([
        ["c7/old", [3]],
        ["c7/unheard", [50]],
        ["c7/muted", [60]],
        ["c8/x", [70]],
      ]),
      mentions: new Set([3]),
    },
  } as unknown as Parameters<typeof topicRows>[0];
  const topics = ["muted", "a", "b", "c", "d", "e", "f", "Old"].map((name, at) => ({
    name,
    max_id: 60 - at,
  }));
  const rows = topicRows(known, 7, topics);

  it("are newest first, including unread ones missing in the list", () => {
    expect(rows.map((row) => row.name)).toEqual([
      ...["muted", "a", "b", "c", "d", "e", "f", "Old"],
      "Unheard",
    ]);
    expect(rows.at(-2)).toMatchObject({ unread: 1, followed: true, mentioned: true });
  });

  it("are limited: unread, then recent, and the current one", () => {
    const names = visibleTopics(rows, "c7/muted").map((row) => row.name);
    expect(names).toEqual(["Old", "Unheard", "muted", "a", "b", "c"]);
  });

  it("move to the top with a new message", () => {
    const after = withTopic(topics, "OLD", 99);
    expect(after[0]).toEqual({ name: "OLD", max_id: 99 });
    expect(after).toHaveLength(topics.length);
  });

  it("stay in order when older messages arrive", () => {
    const newest = Math.max(...topics.map((topic) => topic.max_id));
    const [first] = withTopic(topics, "New", newest + 9);
    expect(first?.name).toBe("New");
    const more = withTopic(withTopic(topics, "New", newest + 9), "Moved", newest + 5);
    expect(more.map((topic) => topic.name).slice(0, 2)).toEqual(["New", "Moved"]);
    expect(withTopic(more, "new", newest + 1)).toEqual(more);
  });
});
