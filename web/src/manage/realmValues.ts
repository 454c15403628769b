/** The organization's settings by the names that PATCH /realm takes. */
export function realmValues(realm: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(realm)
      .filter(([name]) => name.startsWith("realm_"))
      .map(([name, value]) => [name.slice("realm_".length), value]),
  );
}
