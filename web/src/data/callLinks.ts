import { jitsiServer, type Realm } from "./calls";

/** Link to a new Jitsi room with an unguessable name. */
export function jitsiLink(realm: Realm, name: string, isVoice: boolean): string {
  return `${jitsiServer(realm)}/${name}#config.startWithVideoMuted=${isVoice}`;
}

/** An unguessable name, in letters that every provider accepts. */
export function callName(): string {
  const letters = "abcdefghijklmnopqrstuvwxyz";
  // 234 is the largest multiple of 26 in a byte: larger values would favor some letters.
  const found: string[] = [];
  while (found.length < 20) {
    for (const one of crypto.getRandomValues(new Uint8Array(32))) {
      if (one < 234 && found.length < 20) found.push(letters[one % 26]!);
    }
  }
  return found.join("");
}
