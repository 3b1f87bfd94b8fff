import { GitBranch, GitCommitHorizontal, GitPullRequest, Tag } from "lucide-react";

const kinds: Array<[RegExp, typeof GitBranch, (match: RegExpMatchArray) => string]> = [
  [/^refs\/heads\/(.+)$/, GitBranch, ([, name]) => name ?? ""],
  [/^refs\/(?:pull|pull-requests|merge-requests)\/(\d+)\/(?:merge|head|from)$/, GitPullRequest, ([, number]) => `#${number}`],
  [/^refs\/tags\/(.+)$/, Tag, ([, name]) => name ?? ""],
  [/^refs\/detached\/(.+)$/, GitCommitHorizontal, ([, commit]) => commit?.slice(0, 10) ?? ""],
];

/** The name of a full ref as people say it: "main", "#7", "v1.2". */
export function refName(ref: string): string {
  for (const [pattern, , name] of kinds) {
    const match = ref.match(pattern);
    if (match) return name(match);
  }
  return ref;
}

/** A branch, pull request, tag or commit, with an icon for its kind. */
export function Ref({ name }: { name: string }) {
  const Icon = kinds.find(([pattern]) => pattern.test(name))?.[1] ?? GitBranch;
  return (
    <span className="inline-flex max-w-full items-center gap-1 align-bottom" title={name}>
      <Icon size={13} className="shrink-0 text-muted" aria-hidden />
      <span className="truncate">{refName(name)}</span>
    </span>
  );
}
