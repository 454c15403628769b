/** Addresses that couldn't be invited, and why. */
export function invitationFailures(fields: Readonly<Record<string, unknown>>): string[] {
  const errors = fields["errors"];
  if (!Array.isArray(errors)) return [];
  return errors
    .filter(
      (error): error is [string, string] => Array.isArray(error) && typeof error[0] === "string",
    )
    .map(([address, reason]) => `${address}: ${reason}`);
}
