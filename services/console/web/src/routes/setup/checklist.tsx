import { Circle, CircleCheck, Lock } from "lucide-react";
import { Card } from "@/parts/page";
import { Failure, Loading } from "@/parts/states";
import * as texts from "@/texts";
import { useChecklist } from "./data";

const words = texts.setup.checklist;
const tasks = texts.setup.tasks;

type Task = keyof typeof tasks;
const order = Object.keys(tasks) as Task[];

/** The first steps with an organization. The server knows from the data which are done. */
export function Checklist() {
  const { data, isPending, isError, error, refetch } = useChecklist();
  const stateOf = (task: Task) => data?.find((one) => one.type === task)?.state;
  const done = order.filter((task) => stateOf(task) === "TASK_STATE_COMPLETE").length;
  return (
    <Card title={words.title} actions={data && <span className="text-xs text-muted tabular-nums">{words.progress(done, order.length)}</span>}>
      {isPending && <Loading />}
      {isError && <Failure error={error} retry={() => void refetch()} />}
      {data && (
        <ol className="grid gap-3">
          {order.map((task) => {
            const state = stateOf(task);
            const complete = state === "TASK_STATE_COMPLETE";
            const locked = state === "TASK_STATE_LOCKED";
            return (
              <li key={task} className="flex gap-2.5">
                <span className={complete ? "text-good" : "text-muted"}>
                  {complete ? <CircleCheck size={17} aria-hidden /> : locked ? <Lock size={16} aria-hidden /> : <Circle size={17} aria-hidden />}
                  <span className="sr-only">{complete ? words.done : locked ? words.locked : words.open}</span>
                </span>
                <div className="min-w-0">
                  <p className={complete ? "text-muted" : "font-medium"}>{tasks[task].title}</p>
                  {!complete && <p className="text-xs text-muted text-pretty">{locked ? words.locked : tasks[task].hint}</p>}
                </div>
              </li>
            );
          })}
        </ol>
      )}
    </Card>
  );
}
