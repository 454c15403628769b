import { describe, expect, it } from "vitest";
import { callName, jitsiLink } from "./callLinks";
import { callProvider } from "./calls";

const jitsi = { realm_video_chat_provider: 1, server_jitsi_server_url: "https://meet.jit.si" };
const blue = { big_blue_button: { id: 4, name: "BigBlueButton" } };

describe("a call", () => {
  it.each([
    [{ realm_video_chat_provider: 0 }, null],
    [{}, null],
    [jitsi, "jitsi"],
    [{ realm_video_chat_provider: 1 }, null],
    [{ ...jitsi, realm_jitsi_server_url: "javascript:alert(1)" }, null],
    [{ realm_video_chat_provider: 4 }, null],
    [{ realm_video_chat_provider: 4, realm_available_video_chat_providers: blue }, "bigbluebutton"],
    [{ realm_video_chat_provider: 3 }, null],
  ])("is held where the organization says: %j", (realm, provider) => {
    expect(callProvider(realm)).toBe(provider);
  });

  it("at Jitsi has a link of its own, at the organization's server first", () => {
    const own = { ...jitsi, realm_jitsi_server_url: "https://calls.example.com/" };
    expect(jitsiLink(own, "name", false)).toBe(
      "https://calls.example.com/name#config.startWithVideoMuted=false",
    );
    expect(jitsiLink(jitsi, "name", true)).toBe(
      "https://meet.jit.si/name#config.startWithVideoMuted=true",
    );
    expect(callName()).toMatch(/^[a-z]{20}$/);
    expect(callName()).not.toBe(callName());
  });
});
