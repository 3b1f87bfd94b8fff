import { Link } from "@tanstack/react-router";
import { CircleAlert, CircleCheck, LoaderCircle, Upload as UploadIcon } from "lucide-react";
import { type DragEvent, useEffect, useRef, useState } from "react";
import { useActions, useDeployment } from "@/api/session";
import { formatNumber } from "@/format";
import { Button } from "@/parts/button";
import { cx } from "@/parts/cx";
import { TextField } from "@/parts/field";
import { Loading } from "@/parts/states";
import * as texts from "@/texts";
import { type Uploaded, useUpload } from "./data";

const words = texts.setup.upload;

/** A report from the disk becomes findings, if the caller may upload. */
export function UploadPanel() {
  const actions = useActions();
  if (!actions) return <Loading />;
  return actions.includes("scans:upload") ? <Upload /> : <p className="text-muted text-pretty">{words.notAllowed}</p>;
}

/** What the server said to a file. */
interface Answer {
  name: string;
  result?: Uploaded;
  error?: Error;
}

/** Drop reports, or choose them. */
function Upload() {
  const [project, setProject] = useState(words.projectDefault);
  const [ref, setRef] = useState("main");
  const upload = useUpload();
  const [answers, setAnswers] = useState<Answer[]>([]);
  const send = async (files: FileList | null) => {
    setAnswers([]);
    for (const file of [...(files ?? [])]) { // a copy: the field is emptied meanwhile
      const answer: Answer = await upload.mutateAsync({ file, project: project.trim(), ref: ref.trim() })
        .then((result) => ({ name: file.name, result }), (error: Error) => ({ name: file.name, error }));
      setAnswers((all) => [...all, answer]);
    }
  };
  return (
    <div className="grid gap-4">
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField label={words.project} hint={words.projectHint} required maxLength={255} value={project} onChange={({ target }) => setProject(target.value)} />
        <TextField label={words.branch} required maxLength={255} value={ref} onChange={({ target }) => setRef(target.value)} />
      </div>
      <DropZone disabled={upload.isPending || !project.trim() || !ref.trim()} onFiles={(files) => void send(files)} />
      <div role="status" className="grid gap-2 empty:hidden">
        {upload.isPending && (
          <p className="flex items-center gap-2 text-muted"><LoaderCircle size={16} className="animate-spin" aria-hidden />{words.uploading(upload.variables.file.name)}</p>
        )}
        {answers.map(({ name, result }, i) => result && <Result key={i} name={name} result={result} />)}
      </div>
      {answers.map(({ name, error }, i) => error && (
        <div key={i} role="alert" className="flex gap-2 text-bad">
          <CircleAlert size={16} className="mt-0.5 shrink-0" aria-hidden />
          <p className="min-w-0 wrap-anywhere"><b className="font-medium">{words.failed(name)}.</b> {error.message}</p>
        </div>
      ))}
    </div>
  );
}

function DropZone({ disabled, onFiles }: { disabled: boolean; onFiles: (files: FileList | null) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  useEffect(() => {
    // A file that is dropped beside the zone would replace the page.
    const keep = (event: Event) => event.preventDefault();
    window.addEventListener("dragover", keep);
    window.addEventListener("drop", keep);
    return () => {
      window.removeEventListener("dragover", keep);
      window.removeEventListener("drop", keep);
    };
  }, []);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (!disabled) onFiles(event.dataTransfer.files);
  };
  return (
    <div
      onDragOver={(event) => {
        event.preventDefault();
        setOver(!disabled);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
      className={cx("flex flex-col items-center gap-2 rounded-lg border-2 border-dashed px-4 py-10 text-center transition-colors", over ? "border-accent bg-accent-soft" : "border-line-strong/50")}
    >
      <UploadIcon size={26} className="text-muted" aria-hidden />
      <p className="text-base font-medium">{words.drop}</p>
      <p className="text-xs text-muted">{words.or}</p>
      <Button look="primary" className="mt-2" disabled={disabled} onClick={() => input.current?.click()}>{words.choose}</Button>
      <input
        ref={input}
        type="file"
        multiple
        className="hidden"
        aria-label={words.choose}
        tabIndex={-1}
        onChange={({ target }) => {
          onFiles(target.files);
          target.value = "";
        }}
      />
    </div>
  );
}

function Result({ name, result }: { name: string; result: Uploaded }) {
  const { slug: org = "" } = useDeployment();
  return (
    <div className="flex gap-2">
      <CircleCheck size={16} className="mt-0.5 shrink-0 text-good" aria-hidden />
      <div className="grid min-w-0 gap-1">
        <p className="font-medium wrap-anywhere">{words.done(name)}</p>
        <p>{words.counts(formatNumber(result.created), formatNumber(result.updated + result.unchanged), formatNumber(result.fixed))}</p>
        {result.runs.map((run) => (
          <p key={run.index} className="text-muted wrap-anywhere">{[words.tool(run.tool, formatNumber(run.results)), run.rejected, ...run.warnings].filter(Boolean).join(" · ")}</p>
        ))}
        {result.skipped > 0 && (
          <details>
            <summary className="cursor-pointer text-warn">{words.skipped(formatNumber(result.skipped))}</summary>
            <ul className="mt-1 list-disc pl-5 text-muted">
              {result.skipped_results.map((one, i) => <li key={i} className="wrap-anywhere">{one.reason}</li>)}
            </ul>
          </details>
        )}
        <Link to="/$org/triage" params={{ org }} search={{ everywhere: true }} className="text-accent underline">{words.triage}</Link>
      </div>
    </div>
  );
}
