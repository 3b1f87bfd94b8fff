import { formatAgo, formatDateTime, type Moment } from "@/format";

/** A moment as "3 days ago", with the date and time on hover and for screen readers. */
export function When({ at }: { at: Moment }) {
  if (!at) return <span>–</span>;
  const exact = formatDateTime(at);
  return (
    <time dateTime={new Date(at).toISOString()} title={exact} className="whitespace-nowrap">
      {formatAgo(at)}
    </time>
  );
}
