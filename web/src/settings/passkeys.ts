/** Passkeys in the browser (WebAuthn). Options and credentials are JSON with Base64url texts. */

interface Descriptor {
  id: string;
  type: "public-key";
  transports?: AuthenticatorTransport[];
}

export type CreationOptions = Omit<
  PublicKeyCredentialCreationOptions,
  "challenge" | "user" | "excludeCredentials"
> & {
  challenge: string;
  user: { id: string; name: string; displayName: string };
  excludeCredentials?: Descriptor[];
};

export type RequestOptions = Omit<
  PublicKeyCredentialRequestOptions,
  "challenge" | "allowCredentials"
> & { challenge: string; allowCredentials?: Descriptor[] };

/** Whether the browser offers passkeys here: it needs HTTPS. */
export function hasPasskeys(): boolean {
  return "PublicKeyCredential" in globalThis;
}

export function bytes(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

export function base64url(buffer: ArrayBuffer): string {
  return btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

const known = (all: Descriptor[] = []) =>
  all.map((descriptor) => ({ ...descriptor, id: bytes(descriptor.id) }));

/** Ask for a new passkey. Throws a DOMException if that fails or is canceled. */
export async function createPasskey(options: CreationOptions): Promise<object> {
  const credential = (await navigator.credentials.create({
    publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      user: { ...options.user, id: bytes(options.user.id) },
      excludeCredentials: known(options.excludeCredentials),
    },
  })) as PublicKeyCredential;
  const response = credential.response as AuthenticatorAttestationResponse;
  return {
    id: credential.id,
    rawId: base64url(credential.rawId),
    type: credential.type,
    response: {
      clientDataJSON: base64url(response.clientDataJSON),
      attestationObject: base64url(response.attestationObject),
      transports: response.getTransports?.() ?? [],
    },
  };
}

/** Ask for a passkey's answer. Throws a DOMException if that fails or is canceled. */
export async function usePasskey(options: RequestOptions): Promise<object> {
  const answer = (await navigator.credentials.get({
    publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      allowCredentials: known(options.allowCredentials),
    },
  })) as PublicKeyCredential;
  const response = answer.response as AuthenticatorAssertionResponse;
  return {
    id: answer.id,
    rawId: base64url(answer.rawId),
    type: answer.type,
    response: {
      clientDataJSON: base64url(response.clientDataJSON),
      authenticatorData: base64url(response.authenticatorData),
      signature: base64url(response.signature),
      userHandle: response.userHandle ? base64url(response.userHandle) : null,
    },
  };
}
