/** The page's first script. It sends the client's first requests, shows the words of the
 * conversation as soon as they arrive, and then loads the client. */

import { conversationPlace } from "../data/fragments";
import { beginEarly, earlyMessages } from "../wire/early";
import { showPreview } from "./preview";

/** How long the client waits for the words, in ms. */
const PATIENCE = 2000;

const fragment = () => window.location.hash.slice(1);
const opened = fragment();

beginEarly(conversationPlace(opened));
const early = earlyMessages();
const shown = early?.answer.then((answer) => {
  const opening = document.getElementById("opening");
  if (!answer?.messages.length || !opening || fragment() !== opened) return;
  showPreview(opening, answer, early);
  window.addEventListener("hashchange", () => opening.remove(), { once: true });
});

async function loadClient(): Promise<void> {
  // On a slow network, both would come later together. What the service worker has comes at once.
  if (shown && !navigator.serviceWorker?.controller) {
    const late = new Promise((resolve) => setTimeout(resolve, PATIENCE));
    await Promise.race([shown.catch((error) => console.error(error)), late]);
  }
  // In development, the page loads it by itself.
  const client = document.querySelector<HTMLTemplateElement>("#client");
  if (client) document.body.append(document.importNode(client.content, true));
}

void loadClient();
