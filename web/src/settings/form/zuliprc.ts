/** The configuration file of API clients. */
export function zuliprc(email: string, key: string, site: string): string {
  return `[api]\nemail=${email}\nkey=${key}\nsite=${site}\n`;
}
