import { describe, expect, it, vi } from "vitest";
import { desktopNote, systemInput, type Bridge } from "./desktop";
import { handleDesktopRequests, type DesktopRequests } from "./desktopRequests";

type Hear = (...told: unknown[]) => void;

function bridge() {
  const heard = new Map<string, Hear>();
  const sent: unknown[][] = [];
  const made: Bridge = {
    send_event: (...told) => sent.push(told),
    on_event: (name, listener) => void heard.set(name, listener as Hear),
    get_idle_on_system: () => true,
    get_last_active_on_system: () => 5,
    set_send_notification_reply_message_supported: vi.fn(),
  };
  return { made, heard, sent };
}

function asked(): DesktopRequests {
  return {
    signOut: vi.fn(),
    showKeys: vi.fn(),
    showNoticeSettings: vi.fn(),
    answer: vi.fn(() => Promise.resolve()),
  };
}

describe("desktop app", () => {
  it("handles menu requests until stopped", () => {
    const { made, heard } = bridge();
    const wanted = asked();
    const end = handleDesktopRequests(wanted, made);
    for (const name of ["logout", "show-keyboard-shortcuts", "show-notification-settings"]) {
      heard.get(name)?.();
    }
    heard.get("send_notification_reply_message")?.("7", "yes");
    expect(wanted.answer).toHaveBeenCalledWith(7, "yes");
    expect(made.set_send_notification_reply_message_supported).toHaveBeenCalledWith(true);
    end();
    heard.get("logout")?.();
    for (const one of [wanted.signOut, wanted.showKeys, wanted.showNoticeSettings]) {
      expect(one).toHaveBeenCalledTimes(1);
    }
  });

  it("reports replies that couldn't be sent", async () => {
    const { made, heard, sent } = bridge();
    handleDesktopRequests({ ...asked(), answer: () => Promise.reject(new Error("no")) }, made);
    heard.get("send_notification_reply_message")?.(7, "yes");
    await vi.waitFor(() => expect(sent).toHaveLength(1));
    expect(sent[0]?.[0]).toBe("send_notification_reply_message_failed");
    expect(sent[0]?.[1]).toMatchObject({ message_id: 7 });
  });

  it("reports idle time and shows notifications", () => {
    const { made } = bridge();
    expect(systemInput(made)).toEqual({ isIdle: true, at: 5 });
    expect(systemInput(null)).toBeNull();
    expect(desktopNote("a", {}, () => undefined, made)).toBeNull();
    const close = vi.fn();
    let dispatch: (type: string) => boolean = () => false;
    made.new_notification = (_title, _how, call) => {
      dispatch = (type) => call(type, {});
      return { close };
    };
    const clicked = vi.fn();
    expect(desktopNote("a", {}, clicked, made)).not.toBeNull();
    expect([dispatch("show"), dispatch("click")]).toEqual([true, true]);
    expect(clicked).toHaveBeenCalledTimes(1);
    expect(close).toHaveBeenCalledTimes(1);
  });

  it("is absent in browsers", () => {
    expect(() => handleDesktopRequests(asked(), null)()).not.toThrow();
  });
});
