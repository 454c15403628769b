/** The organization's settings by the names with which they are changed. */
export function realmValues(realm: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(realm)
      .filter(([name]) => name.startsWith("realm_"))
      .map(([name, value]) => [name.slice("realm_".length), value]),
  );
}
