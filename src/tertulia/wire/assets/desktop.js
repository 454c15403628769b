// Signing in to the desktop app through the user's browser.

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Return an AES-GCM key, and a promise of what the user pastes, decrypted with it. */
async function pastedCode(field) {
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, true, ["decrypt"]);
  const pasted = new Promise((resolve) => {
    field.addEventListener("input", async () => {
      const bytes = Uint8Array.from(field.value.trim().match(/../g) ?? [], (pair) =>
        Number.parseInt(pair, 16),
      );
      try {
        const iv = bytes.slice(0, 12);
        const text = await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, bytes.slice(12));
        resolve(new TextDecoder().decode(text));
      } catch {
        // Not the code yet.
      }
    });
  });
  return { key: new Uint8Array(await crypto.subtle.exportKey("raw", key)), pasted };
}

async function start(form) {
  form.addEventListener("submit", (event) => event.preventDefault());
  // The desktop app watches the clipboard, so that nobody has to paste.
  const app = globalThis.electron_bridge;
  let code;
  try {
    code = app?.decrypt_clipboard ? app.decrypt_clipboard(1) : await pastedCode(form.elements.code);
  } catch {
    document.getElementById("trouble").hidden = false;
    return;
  }
  const browser = new URL(location.href);
  browser.searchParams.set("desktop_flow_otp", hex(code.key));
  window.open(browser, "_blank");
  const token = await code.pasted;
  location.assign(`/accounts/login/subdomain/${encodeURIComponent(token)}`);
}

function end(button) {
  button.hidden = false;
  button.focus();
  button.addEventListener("click", async () => {
    const field = document.getElementById("code");
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      document.execCommand("copy"); // Without https, pages have no access to the clipboard.
    }
    button.textContent = button.dataset.copied;
  });
}

const form = document.getElementById("desktop");
const button = document.getElementById("copy");
if (form) start(form);
if (button) end(button);
