import { afterAll, expect, test, vi } from "vitest";
import { words } from "./index.svelte";

vi.stubGlobal("document", { documentElement: { lang: "en" } });
afterAll(() => vi.unstubAllGlobals());

test("parts loaded later have texts in the current language", async () => {
  expect(() => words.settings).toThrow("words.with");
  expect(await words.with(Promise.resolve("a view"), "settings")).toBe("a view");
  expect(words.settings.password).toBe("Password");

  await words.speak("fr-CA");
  expect(words.language).toBe("fr");
  expect(words.common.save).toBe("Enregistrer");
  expect(words.settings.password).toBe("Mot de passe");
  expect(() => words.manage).toThrow("words.with");

  // Both load in parallel, and both end in the new language.
  const view = words.with(Promise.resolve(1), "manage");
  await Promise.all([words.speak("pt-br"), view]);
  expect([words.settings.password, words.manage.color]).toEqual(["Senha", "Cor"]);
});

test("the last requested language wins, and unknown ones are English", async () => {
  const slow = words.speak("ja");
  await words.speak("xx");
  await slow;
  expect(words.language).toBe("en");
  expect(document.documentElement.lang).toBe("en");
  expect(words.common.save).toBe("Save");
});

test("reports a view that fails to load", async () => {
  await expect(words.with(Promise.reject(new Error("away")), "manage")).rejects.toThrow("away");
});
