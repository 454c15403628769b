/** Links to new calls. Pure, but for the dice. */

import { jitsiServer, type Realm } from "./calls";

/** A new call there: nobody finds it who does not have its link. */
export function jitsiLink(realm: Realm, name: string, isVoice: boolean): string {
  return `${jitsiServer(realm)}/${name}#config.startWithVideoMuted=${isVoice}`;
}

/** A name that nobody guesses, in letters that every provider takes. */
export function callName(): string {
  const letters = "abcdefghijklmnopqrstuvwxyz";
  // 234 is the greatest multiple of 26 in a byte: above it, some letters would come more often.
  const found: string[] = [];
  while (found.length < 20) {
    for (const one of crypto.getRandomValues(new Uint8Array(32))) {
      if (one < 234 && found.length < 20) found.push(letters[one % 26]!);
    }
  }
  return found.join("");
}
