/** Return a function that maps a number to its plural category in a language: `one`, `few`,
 * `other`, … */
export function pluralsOf(language: string): (count: number) => Intl.LDMLPluralRule {
  let rules: Intl.PluralRules | undefined;
  return (count) => (rules ??= new Intl.PluralRules(language)).select(count);
}
