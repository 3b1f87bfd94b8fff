import { Button } from "./button";

/** The button below a list that has more pages. */
export function More({ query, label }: {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  label: string;
}) {
  if (!query.hasNextPage) return null;
  return (
    <div className="flex justify-center py-3 print:hidden">
      <Button disabled={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>{label}</Button>
    </div>
  );
}
