/** A line of code with its number; undefined where the scanner did not say where its code begins. */
export interface Line {
  number?: number;
  text: string;
  marked: boolean;
}

export interface Place {
  line: number;
  endLine: number;
}

const numbered = /^\s*(\d+)(?::|\s*\|)(?: |$)/;
/** Longer code is cut: a minified file is one line of megabytes. */
export const longestCode = 20_000;
export const longestLine = 2_000;

/**
 * The lines of a scanner's code. Some scanners write numbers in front of the lines; others send exactly the lines of the
 * place, or more lines around it without saying where they begin.
 */
export function linesOf(code: string, place: Place): Line[] {
  const texts = code.slice(0, longestCode).replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n");
  const numbers = texts.map((text) => numbered.exec(text)?.[1]);
  const last = Math.max(place.line, place.endLine);
  const marks = (number: number): boolean => number >= place.line && number <= last;
  if (texts.length > 0 && numbers.every((number, i) => number !== undefined && (i === 0 || Number(number) === Number(numbers[i - 1]) + 1))) {
    return texts.map((text, i) => ({ number: Number(numbers[i]), text: text.replace(numbered, "").slice(0, longestLine), marked: marks(Number(numbers[i])) }));
  }
  const whole = texts.length <= last - place.line + 1;
  return texts.map((text, i) => ({ number: place.line > 0 && whole ? place.line + i : undefined, text: text.slice(0, longestLine), marked: whole }));
}
