// An OpenID provider (npm's oidc-provider) on loopback, which tests control with POST /control:
// `person` is who signs in next, without a form if `form` is false; `clients` are registered;
// `rotate` signs with another key; `requires_consent` refuses people.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.argv[2]);
const { Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));

const people = new Map();
const control = { person: null, form: false, refuses: false, clients: [] };
let issuer = "";
let provider;
let callback;

function make() {
  const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });
  provider = new Provider(issuer, {
    clients: control.clients,
    jwks: { keys: [{ ...key, kid: randomUUID(), use: "sig", alg: "RS256" }] },
    claims: {
      openid: ["sub"],
      email: ["email", "email_verified"],
      profile: ["name", "groups"],
    },
    conformIdTokenClaims: false,
    cookies: { keys: ["a test"] },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true },
    },
    // Logout tokens go to the tested server on this machine, which the default refuses.
    fetch: (url, { dispatcher, ...options }) => globalThis.fetch(url, options),
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people.get(id) }) }),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    loadExistingGrant: async (ctx) => {
      const grant = new ctx.oidc.provider.Grant({
        clientId: ctx.oidc.client.clientId,
        accountId: ctx.oidc.session.accountId,
      });
      grant.addOIDCScope("openid email profile");
      await grant.save();
      return grant;
    },
    pkce: { required: () => true },
    renderError: (ctx, out) => {
      ctx.type = "text/plain";
      ctx.body = JSON.stringify(out);
    },
  });
  callback = provider.callback();
}

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}

async function finish(request, response, person) {
  if (control.refuses) {
    const result = { error: "access_denied", error_description: "not allowed" };
    return provider.interactionFinished(request, response, result);
  }
  const { sub, ...claims } = person;
  people.set(sub, claims);
  return provider.interactionFinished(request, response, { login: { accountId: sub } });
}

const server = createServer(async (request, response) => {
  const path = new URL(request.url, "http://provider").pathname;
  if (path === "/control") {
    const asked = JSON.parse(await bodyOf(request));
    const known = ["person", "form", "refuses", "clients"];
    for (const name of known) if (name in asked) control[name] = asked[name];
    if (asked.rotate || asked.clients) make();
    response.end("{}");
  } else if (path.startsWith("/interaction/")) {
    if (request.method === "POST") {
      const form = new URLSearchParams(await bodyOf(request));
      const person = { ...control.person, sub: form.get("sub"), email: form.get("email") };
      return finish(request, response, person);
    }
    if (!control.form) return finish(request, response, control.person);
    response.setHeader("Content-Type", "text/html");
    response.end(`<!doctype html><title>Provider</title><form method="post">
      <label>ID <input name="sub"></label><label>Email <input name="email"></label>
      <button>Continue</button></form>`);
  } else {
    callback(request, response);
  }
});
server.listen(0, "127.0.0.1", () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  make();
  console.log(issuer);
});
// The test ends this process by closing its input.
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
