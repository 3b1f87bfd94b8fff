/** cx joins class names and leaves out what is false. */
export const cx = (...names: Array<string | false | null | undefined>): string => names.filter(Boolean).join(" ");
