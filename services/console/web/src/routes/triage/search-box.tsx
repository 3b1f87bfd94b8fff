import { useQuery } from "@tanstack/react-query";
import { Search as Icon } from "lucide-react";
import { type RefObject, useId, useState } from "react";
import { useDeployment } from "@/api/session";
import { cx } from "@/parts/cx";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import { facetsQuery } from "./calls";
import type { FieldName } from "./fields";
import { clean, joinList, type Search, splitList } from "./search";

const t = texts.triage;

interface Suggestion {
  text: string;
  hint: string;
  search: Search;
}

const searched = [["rule", "rules"], ["project", "repositoryNames"], ["package", "dependencies"]] as const satisfies ReadonlyArray<readonly [FieldName, string]>;

/** Narrows the list by a part of the path, or by a rule or a project that has the text in its name. */
export function SearchBox({ search, set, inputRef }: { search: Search; set: (search: Search) => void; inputRef: RefObject<HTMLInputElement | null> }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const deploymentId = useDeployment().id ?? "";
  const { data } = useQuery(facetsQuery(deploymentId, search));
  const wanted = text.trim().toLowerCase();
  const suggestions: Suggestion[] = !wanted ? [] : [
    { text: t.search.path(text.trim()), hint: "", search: clean({ ...search, path: text.trim() }) },
    ...searched.flatMap(([param, api]) =>
      (data?.facets.find((facet) => facet.field === api)?.values ?? [])
        .filter(({ value }) => value.toLowerCase().includes(wanted))
        .slice(0, 5)
        .map(({ value, count }) => ({
          text: `${t.fields[param]}: ${value}`,
          hint: formatNumber(Number(count)),
          search: clean({ ...search, [param]: joinList([...new Set([...splitList(search[param]), value])]) }),
        })),
    ),
  ];
  const choose = (suggestion: Suggestion | undefined) => {
    if (!suggestion) return;
    set(suggestion.search);
    setText("");
    inputRef.current?.blur();
  };
  return (
    <div className="relative w-64 max-md:w-56">
      <Icon size={14} className="absolute top-2.5 left-2.5 text-muted" aria-hidden />
      <input
        ref={inputRef}
        type="search"
        role="combobox"
        aria-label={t.search.label}
        aria-expanded={suggestions.length > 0}
        aria-controls={list}
        aria-activedescendant={suggestions.length ? `${list}-${at}` : undefined}
        aria-autocomplete="list"
        placeholder={t.search.placeholder}
        value={text}
        maxLength={500}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") choose(suggestions[at]);
          else if (event.key === "Escape") {
            setText("");
            inputRef.current?.blur();
          } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            setAt((now) => Math.max(0, Math.min(suggestions.length - 1, now + (event.key === "ArrowDown" ? 1 : -1))));
          }
        }}
        onBlur={() => setTimeout(() => setText(""), 150)}
        className="h-8 w-full rounded-md border border-line-strong/60 bg-surface pr-2 pl-8 text-[0.8125rem] placeholder:text-muted"
      />
      <ul id={list} role="listbox" aria-label={t.search.suggestions} hidden={suggestions.length === 0} className="absolute right-0 left-0 z-30 mt-1 max-h-80 min-w-64 overflow-y-auto rounded-md bg-raised p-1 shadow-pop">
        {suggestions.map((one, i) => (
          <li
            key={one.text}
            id={`${list}-${i}`}
            role="option"
            aria-selected={i === at}
            onPointerDown={(event) => {
              event.preventDefault();
              choose(one);
            }}
            className={cx("flex min-h-7 cursor-pointer items-center gap-2 rounded px-2 text-[0.8125rem]", i === at && "bg-accent-soft")}
          >
            <span className="truncate">{one.text}</span>
            <span className="ml-auto text-xs text-muted tabular-nums">{one.hint}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
