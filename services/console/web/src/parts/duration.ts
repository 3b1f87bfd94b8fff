const unit = (name: string) => new Intl.NumberFormat(undefined, { style: "unit", unit: name, unitDisplay: "narrow", maximumFractionDigits: name === "second" ? 1 : 0 });
const seconds = unit("second");
const minutes = unit("minute");
const hours = unit("hour");

/** formatSeconds says how long something took: "0.4s", "3m 20s". */
export function formatSeconds(total: number): string {
  if (total < 60) return seconds.format(total);
  const whole = Math.round(total);
  if (whole < 3_600) return `${minutes.format(Math.floor(whole / 60))} ${seconds.format(whole % 60)}`;
  return `${hours.format(Math.floor(whole / 3_600))} ${minutes.format(Math.floor((whole % 3_600) / 60))}`;
}
