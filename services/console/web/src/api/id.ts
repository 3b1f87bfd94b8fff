/** Whether a text of an address can be the id of something. The API refuses others as malformed; people look for nothing else. */
export const isId = (text: string): boolean => /^[1-9]\d{0,17}$/.test(text);
