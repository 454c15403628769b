// Passkeys on sign-in pages: passes the page's challenge to the browser, and submits the answer.

const bytes = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
const text = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

const form = document.getElementById("passkey");
const trouble = document.getElementById("passkey-trouble");
const challenge = JSON.parse(form.dataset.options);
const isNew = Boolean(challenge.user); // The page adds a passkey.
const withBytes = (list) => list?.map((one) => ({ ...one, id: bytes(one.id) }));
const publicKey = {
  ...challenge,
  challenge: bytes(challenge.challenge),
  ...(isNew
    ? {
        user: { ...challenge.user, id: bytes(challenge.user.id) },
        excludeCredentials: withBytes(challenge.excludeCredentials),
      }
    : { allowCredentials: withBytes(challenge.allowCredentials) }),
};
let waiting;

/** Ask for a passkey: in a dialog, or, if it's `conditional`, among the suggestions of the field. */
async function ask(mediation) {
  waiting?.abort();
  waiting = new AbortController();
  const { signal } = waiting;
  trouble.hidden = true;
  let credential;
  try {
    credential = isNew
      ? await navigator.credentials.create({ publicKey, signal })
      : await navigator.credentials.get({ publicKey, mediation, signal });
  } catch (error) {
    trouble.hidden = signal.aborted || mediation === "conditional";
    return;
  }
  const { id, rawId, type, response } = credential;
  form.elements.passkey.value = JSON.stringify({
    id,
    rawId: text(rawId),
    type,
    response: {
      clientDataJSON: text(response.clientDataJSON),
      ...(isNew
        ? {
            attestationObject: text(response.attestationObject),
            transports: response.getTransports?.() ?? [],
          }
        : {
            authenticatorData: text(response.authenticatorData),
            signature: text(response.signature),
            userHandle: response.userHandle ? text(response.userHandle) : null,
          }),
    },
    clientExtensionResults: {},
  });
  form.submit();
}

if (globalThis.PublicKeyCredential) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask("optional");
  });
  if (form.dataset.suggests) {
    PublicKeyCredential.isConditionalMediationAvailable?.().then((isListed) => {
      if (isListed) ask("conditional");
    });
  }
}
