import { formatNumber } from "@/format";
import { CircleAlert, CircleCheck } from "lucide-react";
import { Button } from "@/parts/button";
import { Card } from "@/parts/page";
import { Failure, Loading } from "@/parts/states";
import * as texts from "@/texts";
import { useDoctor } from "./data";

const words = texts.setup.doctor;

/** The state of the installation, for administrators. Problems come first. */
export function Doctor() {
  const { data, isPending, isError, error, refetch, isFetching } = useDoctor(true);
  const checks = data?.checks.toSorted((a, b) => Number(a.ok) - Number(b.ok)) ?? [];
  const problems = checks.filter((check) => !check.ok).length;
  return (
    <Card title={words.title} actions={<Button disabled={isFetching} onClick={() => void refetch()}>{words.again}</Button>}>
      {isPending && <Loading />}
      {isError && <Failure error={error} retry={() => void refetch()} />}
      {data && (
        <>
          <p className="mb-3 text-muted">
            <span className={problems > 0 ? "font-medium text-bad" : "font-medium text-good"}>{problems > 0 ? words.problems(formatNumber(problems)) : words.well}</span>
            {data.version && <> · {words.version(data.version)}</>}
          </p>
          <ul className="divide-y divide-line">
            {checks.map((check) => (
              <li key={check.name} className="grid grid-cols-[auto_1fr] gap-x-2.5 py-1.5 sm:grid-cols-[auto_10rem_1fr]">
                <span className={check.ok ? "text-good" : "text-bad"}>
                  {check.ok ? <CircleCheck size={16} aria-hidden /> : <CircleAlert size={16} aria-hidden />}
                  <span className="sr-only">{check.ok ? words.ok : words.failed}</span>
                </span>
                <span className="font-medium">{check.name}</span>
                <div className="min-w-0 text-muted wrap-anywhere max-sm:col-start-2">
                  {check.detail}
                  {check.fix && <p className="text-ink">{words.fix} {check.fix}</p>}
                </div>
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  );
}
