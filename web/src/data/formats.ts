/** Create `Intl` formatters once per language, since creating one is slow. */

function kept<Format, How = undefined>(make: (language: string, how?: How) => Format) {
  const known = new Map<string, Format>();
  return (language: string, how?: How): Format => {
    const name = language + JSON.stringify(how);
    let format = known.get(name);
    if (!format) known.set(name, (format = make(language, how)));
    return format;
  };
}

export const dateFormat = kept(
  (language, how?: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(language, how),
);
/** "Yesterday" instead of "1 day ago". */
export const relativeFormat = kept(
  (language) => new Intl.RelativeTimeFormat(language, { numeric: "auto" }),
);
export const listFormat = kept((language) => new Intl.ListFormat(language));
