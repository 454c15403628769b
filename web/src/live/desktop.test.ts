import { describe, expect, it, vi } from "vitest";
import { desktopNote, systemInput, type Bridge } from "./desktop";
import { handleDesktopRequests, type DesktopRequests } from "./desktopRequests";

type BridgeListener = (...args: unknown[]) => void;

function bridge() {
  const listeners = new Map<string, BridgeListener>();
  const sent: unknown[][] = [];
  const fakeBridge: Bridge = {
    send_event: (...args) => sent.push(args),
    on_event: (name, listener) => void listeners.set(name, listener as BridgeListener),
    get_idle_on_system: () => true,
    get_last_active_on_system: () => 5,
    set_send_notification_reply_message_supported: vi.fn(),
  };
  return { fakeBridge, listeners, sent };
}

function requests(): DesktopRequests {
  return {
    signOut: vi.fn(),
    showKeys: vi.fn(),
    showNotificationSettings: vi.fn(),
    answer: vi.fn(() => Promise.resolve()),
  };
}

describe("desktop app", () => {
  it("handles menu requests until stopped", () => {
    const { fakeBridge, listeners } = bridge();
    const wanted = requests();
    const end = handleDesktopRequests(wanted, fakeBridge);
    for (const name of ["logout", "show-keyboard-shortcuts", "show-notification-settings"]) {
      listeners.get(name)?.();
    }
    listeners.get("send_notification_reply_message")?.("7", "yes");
    expect(wanted.answer).toHaveBeenCalledWith(7, "yes");
    expect(fakeBridge.set_send_notification_reply_message_supported).toHaveBeenCalledWith(true);
    end();
    listeners.get("logout")?.();
    for (const request of [wanted.signOut, wanted.showKeys, wanted.showNotificationSettings]) {
      expect(request).toHaveBeenCalledTimes(1);
    }
  });

  it("reports replies that couldn't be sent", async () => {
    const { fakeBridge, listeners, sent } = bridge();
    handleDesktopRequests(
      { ...requests(), answer: () => Promise.reject(new Error("no")) },
      fakeBridge,
    );
    listeners.get("send_notification_reply_message")?.(7, "yes");
    await vi.waitFor(() => expect(sent).toHaveLength(1));
    expect(sent[0]?.[0]).toBe("send_notification_reply_message_failed");
    expect(sent[0]?.[1]).toMatchObject({ message_id: 7 });
  });

  it("reports idle time and shows notifications", () => {
    const { fakeBridge } = bridge();
    expect(systemInput(fakeBridge)).toEqual({ isIdle: true, at: 5 });
    expect(systemInput(null)).toBeNull();
    expect(desktopNote("a", {}, () => undefined, fakeBridge)).toBeNull();
    const close = vi.fn();
    let dispatch: (type: string) => boolean = () => false;
    fakeBridge.new_notification = (_title, _how, call) => {
      dispatch = (type) => call(type, {});
      return { close };
    };
    const clicked = vi.fn();
    expect(desktopNote("a", {}, clicked, fakeBridge)).not.toBeNull();
    expect([dispatch("show"), dispatch("click")]).toEqual([true, true]);
    expect(clicked).toHaveBeenCalledTimes(1);
    expect(close).toHaveBeenCalledTimes(1);
  });

  it("is absent in browsers", () => {
    expect(() => handleDesktopRequests(requests(), null)()).not.toThrow();
  });
});
