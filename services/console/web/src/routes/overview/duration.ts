const units = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

const formats = Object.fromEntries(
  units.map(([unit]) => [unit, new Intl.NumberFormat(undefined, { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: 1 })]),
);

/** formatDuration shows seconds in the largest unit that fits: "3.5 days". */
export function formatDuration(seconds: number): string {
  const [unit, size] = units.find(([, length]) => seconds >= length) ?? (["minute", 60] as const);
  return formats[unit]?.format(seconds / size) ?? String(seconds);
}
